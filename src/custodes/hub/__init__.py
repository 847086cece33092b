"""The Hub: the policy, the adapters and what runs, in a browser and as JSON over HTTP.

A surface: it holds no rule. Importing it loads starlette and uvicorn (the extra ``custodes[hub]``), so only
`cos hub` does.
"""
