# The images of CodeHub on Docker or Kubernetes, all from this file: `make images` builds them (docs/docker.md).
# Any Debian with Python 3.11 or newer can be the base.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS python
RUN command -v python3 >/dev/null && python3 -c "import ensurepip, venv" || \
    (apt-get update && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates procps && \
     rm -rf /var/lib/apt/lists/* /var/cache/apt/*)
ENV PATH=/opt/codehub/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# What changes seldom first: the locked requirements are installed anew only when they have changed.
COPY requirements.lock /opt/src/
RUN python3 -m venv /opt/codehub && \
    pip --disable-pip-version-check --no-cache-dir install --no-compile --no-deps --require-hashes -r /opt/src/requirements.lock && \
    python3 -m compileall -q /opt/codehub/lib

# The first process of workspaces' containers on Kubernetes: copied into pods whose images need have nothing of ours.
FROM ${BASE} AS init
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY src/codehub/runtimes/containers/init.c /
RUN gcc -static -Os -Wall -Wextra -Werror -o /codehub-init /init.c && strip /codehub-init

# The platform itself: its roles, the relay beside each workspace, and what packs and unpacks homes.
FROM python AS platform
LABEL org.opencontainers.image.title="CodeHub"
COPY pyproject.toml README.md LICENSE /opt/src/
COPY src /opt/src/src
RUN pip --disable-pip-version-check --no-cache-dir install --no-deps --no-build-isolation /opt/src && rm -r /opt/src
COPY --from=init /codehub-init /opt/codehub/libexec/codehub-init
USER 65532:65532
ENTRYPOINT ["codehub"]

# What workspaces run. Nothing of the platform's is in them but its package: no configuration, no secret, and not the
# answers of the courses that come along. A login shell, as an IDE's terminals are, finds the same programs.
FROM python AS workspace
# Git for courses and for workspaces that begin with a repository; an editor and a pager are what it calls.
RUN apt-get update && apt-get install -y --no-install-recommends git less nano && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# The same once more, because what is above seldom changes.
COPY pyproject.toml README.md LICENSE /opt/src/
COPY src /opt/src/src
RUN pip --disable-pip-version-check --no-cache-dir install --no-deps --no-build-isolation /opt/src && rm -r /opt/src
# Packages of one's own go into the home, as on a machine (docs/templates.md).
RUN rm -r /opt/codehub/lib/python3.*/site-packages/codehub/courses/shipped && \
    sed -i 's/^include-system-site-packages = false/include-system-site-packages = true/' /opt/codehub/pyvenv.cfg && \
    echo 'case ":$PATH:" in *:/opt/codehub/bin:*) ;; *) PATH="$PATH:/opt/codehub/bin" ;; esac' > /etc/profile.d/codehub.sh
USER 65532:65532

FROM workspace AS terminal
LABEL org.opencontainers.image.title="CodeHub Terminal"
CMD ["bash"]

FROM workspace AS jupyterlab
LABEL org.opencontainers.image.title="CodeHub JupyterLab"
CMD ["jupyter-lab", "--no-browser"]

# VS Code, put together as `codehub ide install` does it. Takes minutes, because some of its parts are compiled; the
# platform's own code is not in this stage but for that, so that a new version of the platform need not repeat them.
# Where to fetch from: `/etc/pip.conf` and `/etc/npmrc` of the base, or the proxy that the engine gives to builds.
FROM ${BASE} AS vscode
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates g++ make && \
    rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/python
ENV npm_config_globalconfig=/etc/npmrc NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt LANG=C.UTF-8
COPY src/codehub/__init__.py src/codehub/errors.py /opt/src/codehub/
COPY src/codehub/archives/__init__.py src/codehub/archives/model.py /opt/src/codehub/archives/
COPY src/codehub/templates/__init__.py src/codehub/templates/model.py /opt/src/codehub/templates/
COPY src/codehub/system/__init__.py src/codehub/system/kernel.py /opt/src/codehub/system/
COPY src/codehub/runtimes/shepherd/__init__.py src/codehub/runtimes/shepherd/tree.py /opt/src/codehub/runtimes/shepherd/
COPY src/codehub/runtimes/__init__.py src/codehub/runtimes/base.py src/codehub/runtimes/files.py \
     src/codehub/runtimes/code_server.py src/codehub/runtimes/ide_build.py /opt/src/codehub/runtimes/
RUN python3 -c 'import json, os; print(json.dumps({"aside": "/opt/code-server", "environment": {**os.environ}, "config": {}}))' \
        > /tmp/wanted && \
    { PYTHONPATH=/opt/src /opt/python/bin/python -m codehub.runtimes.ide_build < /tmp/wanted 2> /tmp/log || \
        { tail -n 50 /tmp/log; exit 1; }; } && \
    rm -rf /opt/code-server/.done-* /opt/code-server/cache /opt/code-server/home

FROM workspace AS code-server
COPY --from=vscode /opt/code-server /opt/code-server
ENV PATH=/opt/code-server/bin:$PATH
LABEL org.opencontainers.image.title="CodeHub VS Code"
CMD ["code-server"]
