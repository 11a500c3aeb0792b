import { render } from 'preact';
import { Observable } from 'rxjs';
import { createClient, hashOf, linkedCall, takeToken } from './client.js';
import { type Connection, createSession } from './model/session.js';
import { App } from './view/app.js';
import { firstUi, selectCall, type Ui } from './view/state.js';
import { applyTheme } from './view/toolbar.js';

const maxWaitMs = 10_000;

/** Half a second, twice as long after each failure, or until the network is back. */
const wait$ = (failures: number) =>
  new Observable((subscriber) => {
    const end = () => {
      subscriber.complete();
    };
    const ms = Math.min(500 * 2 ** failures, maxWaitMs) * (0.75 + Math.random() / 2);
    const timer = setTimeout(end, ms);
    window.addEventListener('online', end);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('online', end);
    };
  });

/** Calls a function with the call of the address whenever it changes. */
const onLink = (show: (id: string) => void): void => {
  window.addEventListener('hashchange', () => {
    const id = linkedCall(location.hash);
    if (id !== undefined) show(id);
  });
};

const start = (root: Element): void => {
  const token = takeToken(location, history, sessionStorage);
  const client = createClient({ token, wait$ });
  const session = createSession();
  let ui: Ui = { ...firstUi(), selected: linkedCall(location.hash) };
  let connection: Connection = token === '' ? 'refused' : 'connecting';
  let frame: number | undefined;
  const update = (): void => {
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      document.title = session.title;
      render(
        <App
          session={session}
          client={client}
          ui={ui}
          set={set}
          latest={() => ui}
          send={send}
          connection={connection}
        />,
        root,
      );
    });
  };
  const set = (change: Partial<Ui>): void => {
    if (change.selected !== undefined && change.selected !== ui.selected)
      history.replaceState(null, '', hashOf(change.selected));
    ui = { ...ui, ...change };
    update();
  };
  const report = (error: unknown): void => {
    session.take({ line: 'notice', text: error instanceof Error ? error.message : String(error) });
    update();
  };
  const send = <T,>(request$: Observable<T>, next: (value: T) => void = () => undefined) => {
    const sent = request$.subscribe({ next, error: report });
    return () => {
      sent.unsubscribe();
    };
  };
  const openLinked = (): void => {
    const id = linkedCall(location.hash);
    if (id !== undefined) send(client.open$(id));
  };
  onLink((id) => {
    if (id === ui.selected) return;
    set(selectCall(id));
    // It may be none of the list.
    if (!session.callsById.has(id)) openLinked();
  });
  update();
  if (token === '') return;
  client.feed$.subscribe({
    next: (news) => {
      if (news.type === 'line') {
        connection = 'open';
        if (news.line.line === 'hello') openLinked();
        const again = session.take(news.line);
        if (again !== undefined) send(client.open$(again));
      } else connection = news.type;
      update();
    },
    error: report,
  });
};

applyTheme();
const root = document.querySelector('#page');
if (root !== null) start(root);
