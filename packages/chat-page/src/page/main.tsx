import { render } from 'preact';
import { Observable, takeUntil, timer } from 'rxjs';
import { App } from './app.js';
import { createServer } from './server.js';
import { settingsOf } from './settings.js';
import { showAsked } from './theme.js';

const maxWaitMs = 10_000;

/** The network is back. */
const online$ = new Observable((subscriber) => {
  const emit = (event: Event) => {
    subscriber.next(event);
  };
  window.addEventListener('online', emit);
  return () => {
    window.removeEventListener('online', emit);
  };
});

/** Half a second, twice as long after each failure, or until the network is back. */
const wait$ = (failures: number) => {
  const ms = Math.min(500 * 2 ** failures, maxWaitMs);
  return timer(ms * (0.75 + Math.random() / 2)).pipe(takeUntil(online$));
};

/** Relative to the page, which may be below a path that only the browser knows. */
const urlOf = (link: string): URL => new URL(link, document.baseURI);
const valueOf = (name: string): string | undefined =>
  document.querySelector<HTMLMetaElement>(`meta[name=millrace-${name}]`)?.content;
const api = urlOf(valueOf('api') ?? '/api').pathname.replace(/\/$/u, '');
const tab = valueOf('tab') ?? '';
const settings = {
  ...settingsOf(valueOf('page')),
  ...(tab !== '' && { tab: urlOf(tab).href, agents: {} }),
};
if (settings.tab !== undefined) showAsked(location.search);
for (const [name, color] of Object.entries(settings.theme)) {
  document.documentElement.style.setProperty(`--${name}`, color);
}
const page = document.getElementById('page');
if (page !== null) {
  render(
    <App server={createServer({ api, wait$ })} name={document.title} settings={settings} />,
    page,
  );
}
