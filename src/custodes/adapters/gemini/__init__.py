"""Google's Gemini CLI as a runtime. See README.md."""
