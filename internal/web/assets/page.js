// The page works without state: this script lets its owner in, and asks again when the server says that something changed.
(() => {
  'use strict';

  const say = (text) => {
    const status = document.getElementById('live');
    if (status && status.textContent !== text) status.textContent = text;
  };

  // The token is in the fragment, which is sent to no server. It leaves the address as soon as it has been read.
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token) {
    history.replaceState(null, '', location.pathname + location.search);
    if (document.querySelector('[data-entrance]')) {
      fetch('/session', {method: 'POST', body: token}).then(
        (answer) => answer.ok ? location.reload() : say('This address is of an earlier start. Open the one that was printed last.'),
        () => say('The server of this page does not answer.'));
      return;
    }
  }

  // Milliseconds before a stream is tried again that the server, or a proxy, answered with an error.
  const pause = 5000;
  let stream, from;
  const close = () => {
    if (stream) stream.close();
    stream = from = undefined;
  };
  const refresh = () => htmx.ajax('GET', location.pathname + location.search,
    {target: '#main', select: '#main', swap: 'outerMorph'});

  // One stream a tab, and none while nobody looks.
  const connect = () => {
    const main = document.getElementById('main');
    if (!main || !main.dataset.live) return;
    if (document.hidden) {
      close();
      return;
    }
    if (stream && from === main.dataset.live && stream.readyState !== EventSource.CLOSED) return;
    close();
    from = main.dataset.live;
    const url = new URL(from, location.href);
    url.searchParams.set('have', main.dataset.state);
    stream = new EventSource(url);
    stream.addEventListener('open', () => say('Live'));
    stream.addEventListener('change', refresh);
    stream.addEventListener('end', () => {
      close();
      say('Not live: kubectl jobqueue web has ended. Start it again.');
    });
    stream.addEventListener('error', (event) => {
      say('Not live: the server of this page does not answer. Trying again.');
      // The browser tries again by itself, except after an answer with an error.
      if (event.target.readyState === EventSource.CLOSED) setTimeout(connect, pause);
    });
  };
  document.addEventListener('htmx:after:swap', connect);
  document.addEventListener('visibilitychange', connect);
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', connect);
})();
