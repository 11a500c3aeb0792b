import { render } from 'preact';
import { fromEvent, race, timer } from 'rxjs';
import { App } from './app.js';
import { createServer } from './server.js';

const maxWaitMs = 10_000;

/** Half a second, twice as long after each failure, or until the network is back. */
const wait$ = (failures: number) => {
  const ms = Math.min(500 * 2 ** failures, maxWaitMs);
  return race(timer(ms * (0.75 + Math.random() / 2)), fromEvent(window, 'online'));
};

const api = document.querySelector<HTMLMetaElement>('meta[name=millrace-api]')?.content ?? '/api';
const page = document.getElementById('page');
if (page !== null) {
  render(<App server={createServer({ api, wait$ })} name={document.title} />, page);
}
