// A lab extension of JupyterLab, in the form in which it loads ready-made ones: a module-federation container.
//
// The launcher: JupyterLab opens it about a second after everything else is there, because it waits until its file
// browser has listed the home, by way of two pauses of half a second each. This opens it at once, where JupyterLab
// would open it in any case.
//
// Storage: a browser that blocks other sites' cookies refuses `localStorage` to an IDE in the platform's page, too.
// JupyterLab takes that for another window of the same name, and loads itself again, without end. It gets a storage
// that lasts as long as the page.
//
// Nothing is sent from here.
(() => {
  'use strict';

  class PageStorage {
    #items = new Map();
    get length() {
      return this.#items.size;
    }
    key(index) {
      return [...this.#items.keys()][index] ?? null;
    }
    getItem(key) {
      return this.#items.get(String(key)) ?? null;
    }
    setItem(key, value) {
      this.#items.set(String(key), String(value));
    }
    removeItem(key) {
      this.#items.delete(String(key));
    }
    clear() {
      this.#items.clear();
    }
  }

  for (const name of ['localStorage', 'sessionStorage']) {
    try {
      void window[name];
    } catch {
      Object.defineProperty(window, name, { configurable: true, value: new PageStorage() });
    }
  }

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
    id: '@codehub/workspace:launcher',
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
  window._JUPYTERLAB['@codehub/workspace'] = {
    init: () => undefined, // nothing is shared with others
    get: async () => () => ({ __esModule: true, default: plugin })
  };
})();
