// What a page without a script cannot do: keep what is typed, count down, and say whether it is live.
(() => {
  "use strict";
  const SKIP = "hx-morph-skip"; // a form that is being edited is left as it is by what comes live

  // -- What is typed is kept, until it is sent or given up.

  const forms = () => document.querySelectorAll("form[data-version]");

  const edited = (form) =>
    [...form.elements].some((field) => {
      const was = field.name && form.elements[`was.${field.name}`];
      return was ? field.value !== was.value : field.name === "name" && field.value !== "";
    });

  const mark = (form) => form.toggleAttribute(SKIP, form.hasAttribute("data-draft") || edited(form));

  document.addEventListener("input", ({ target }) => {
    const form = target.form;
    if (form?.hasAttribute("data-version")) {
      unsay(form);
      mark(form);
    }
  });

  const unsay = (form) => {
    // That it was saved is said until the next edit, whatever comes live meanwhile.
    const saved = form.querySelector(".saved");
    saved?.removeAttribute(SKIP);
    saved?.replaceChildren();
  };

  const release = (form) => form?.removeAttribute(SKIP); // its answer holds what was typed

  document.addEventListener(
    "submit",
    ({ target }) => {
      // The Hub may have been started anew since this form came: what is not edited has its present token.
      const token = document.querySelector(`form:not([${SKIP}]) input[name=csrf]`);
      if (token && target.elements.csrf) target.elements.csrf.value = token.value;
      unsay(target);
      release(target);
    },
    true,
  );
  document.addEventListener("htmx:error", ({ target }) => {
    const form = target.closest?.("form[data-version]"); // not sent: what is typed is kept again
    if (form) mark(form);
  });
  const CONFIRM = "details.confirm > form"; // nothing of its answer replaces it
  document.addEventListener("htmx:response:error", ({ target }) => {
    if (target.matches?.(CONFIRM)) mark(target); // refused: what was chosen stays, to be sent otherwise
  });
  document.addEventListener("htmx:after:request", ({ target, detail }) => {
    if (target.matches?.(CONFIRM) && detail.ctx.response.status < 400) {
      const focused = target.contains(document.activeElement);
      target.reset();
      target.parentElement.open = false;
      if (focused) target.parentElement.querySelector("summary").focus();
    }
  });
  document.addEventListener(
    "change",
    ({ target }) => {
      if (target.hasAttribute("data-chooses")) release(target.form);
    },
    true,
  );

  addEventListener("beforeunload", (event) => {
    if (!leaving && document.querySelector(`form[${SKIP}]`)) event.preventDefault();
  });
  let leaving = false;
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-discard]")) {
      // Only the place in the page differs: without this nothing would be loaded.
      leaving = true;
      location.reload();
    }
  });

  const settle = () => {
    for (const form of forms()) {
      if (form.hasAttribute("data-draft")) {
        form.setAttribute(SKIP, "");
      } else if (!form.hasAttribute(SKIP) && !form.contains(document.activeElement)) {
        form.reset(); // controls show what the document says, also those that were used before
      }
      const section = form.closest("section");
      const notice = section?.querySelector(".elsewhere");
      if (notice) notice.hidden = !form.hasAttribute(SKIP) || form.dataset.version === section.dataset.version;
    }
  };

  // -- Seconds that the server stated run down here; it tells the next state itself.

  const ends = new WeakMap();

  const words = (seconds) => {
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
  };

  const say = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  const tick = () => {
    for (const element of document.querySelectorAll("[data-countdown]")) {
      const stated = `${element.dataset.countdown}@${element.dataset.at}`;
      let end = ends.get(element);
      if (end?.stated !== stated) {
        end = { stated, at: performance.now() + 1000 * Number(element.dataset.countdown) };
        ends.set(element, end);
      }
      const left = Math.ceil((end.at - performance.now()) / 1000);
      say(element, left > 0 ? words(left) : "now");
    }
    for (const element of document.querySelectorAll("[data-elapsed]")) {
      say(element, words(Math.max(0, Math.floor(Date.now() / 1000 - Number(element.dataset.elapsed)))));
    }
  };
  setInterval(tick, 500);

  // -- Live or not.

  const link = (state, text) => {
    const element = document.getElementById("link");
    if (!element) return;
    element.hidden = false;
    element.dataset.state = state;
    say(element, text);
  };
  document.addEventListener("htmx:sse:after:connection", () => link("live", "Live"));
  document.addEventListener("htmx:sse:error", () => link("lost", "Reconnecting …"));
  document.addEventListener("htmx:sse:before:connection", ({ detail }) => {
    if (detail.connection.attempt > 0) link("lost", "Reconnecting …");
  });

  document.addEventListener("htmx:after:swap", () => {
    settle();
    tick();
  });
  document.addEventListener("DOMContentLoaded", () => {
    settle();
    tick();
  });
})();
