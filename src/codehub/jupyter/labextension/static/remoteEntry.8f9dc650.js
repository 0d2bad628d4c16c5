// A lab extension of JupyterLab, in the form in which it loads ready-made ones: a module-federation container.
//
// JupyterLab opens the launcher about a second after everything is there: it waits until its file browser has
// listed the home, by way of two pauses of half a second each. This opens it at once, where JupyterLab would open it
// in any case. It sends nothing and keeps nothing.
(() => {
  'use strict';

  // What may stand in the address without meaning that something else is opened.
  const HARMLESS = ['reset', 'clone', 'token'];

  const config = () => {
    const data = document.getElementById('jupyter-config-data');
    return data ? JSON.parse(data.textContent || '{}') : {};
  };

  // `/lab/tree/notebook.ipynb`, or an address that another extension reads: a document is about to be opened.
  const opensSomething = () =>
    Boolean(config().treePath) ||
    [...new URLSearchParams(window.location.search).keys()].some(key => !HARMLESS.includes(key));

  const plugin = {
    id: '@codehub/launcher-at-once:plugin',
    description: 'Opens the launcher as soon as the layout is restored, where nothing else is open.',
    autoStart: true,
    activate: app => {
      if (opensSomething()) {
        return;
      }
      void app.restored.then(() => {
        const { commands, shell } = app;
        if (shell.isEmpty?.('main') && commands.hasCommand('launcher:create')) {
          void commands.execute('launcher:create');
        }
      });
    }
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB['@codehub/launcher-at-once'] = {
    init: () => undefined, // nothing is shared with others
    get: async () => () => ({ __esModule: true, default: plugin })
  };
})();
