"""Any agent that speaks the Agent Client Protocol as a runtime. See README.md."""
