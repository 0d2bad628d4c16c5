"""JupyterLab's front end, made quick without changing it: shared static files, a small lab extension, configuration.

`server_extension` and the lab extension run inside workspaces, in JupyterLab and its pages: they use nothing of the
platform but `identity`. The proxy's workers use `shared_files`.
"""
