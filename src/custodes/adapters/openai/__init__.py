"""Any OpenAI-compatible chat endpoint as a runtime. See README.md."""
