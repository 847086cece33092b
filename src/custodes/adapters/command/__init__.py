"""Any program as a runtime: its models are the programs a project names. See README.md."""
