import { equal, ok } from 'node:assert/strict';
import { type Message, toolCallsOf } from 'millrace';
import { same } from '../column.js';
import type { Client, Tab } from './tab.js';
import { linesIn, viewOf, viewsOf } from './views.js';
import { answerTo, type Line, linesOf, requestOf, type World } from './world.js';

type Path = readonly Line[];

const keyOf = (path: Path): string => JSON.stringify(path.map(({ role, text }) => [role, text]));

/** What the tabs of a scene have shown. */
export interface Ledger {
  /** Keeps what a tab shows, after an action that ended well. */
  readonly note: (tab: Tab) => void;
  /** The server was restarted without a store. */
  readonly forget: () => void;
  /** Checks the requests to the model, that nothing is lost, and that each path can be continued. */
  readonly check: (client?: Pick<Client, 'keepsBranches'>) => Promise<void>;
}

export const createLedger = (world: World): Ledger => {
  const seen = new Map<string, Path>();
  const tabs = new Map<string, Tab>();
  return {
    note: (tab) => {
      const path = tab.shown();
      path.forEach((line, at) => {
        if (requestOf(line) === undefined) return;
        const upTo = path.slice(0, at + 1);
        seen.set(keyOf(upTo), upTo);
        tabs.set(keyOf(upTo), tab);
      });
    },
    forget: () => {
      seen.clear();
      tabs.clear();
    },
    check: async ({ keepsBranches = false } = {}) => {
      asked(world, [...seen.values()]);
      if (keepsBranches) await continuedByTabs(world, [...seen], tabs);
      else await continuedByServer(world, [...seen.values()]);
      // That of the continued ones, too.
      paired(world);
    },
  };
};

/** The request that an answer answers is the path that the client showed before it. */
const asked = ({ requests }: World, paths: readonly Path[]): void => {
  for (const path of paths) {
    const last = path.at(-1);
    const number = last === undefined ? undefined : requestOf(last);
    if (number === undefined) continue;
    same(
      linesOf(requests[number]?.messages ?? []),
      path.slice(0, -1),
      `the model read something else than the client showed before ${answerTo(number)}`,
    );
  }
};

/** Each tool call has exactly one result, right after it. */
export const paired = ({ requests }: Pick<World, 'requests'>): void => {
  requests.forEach(({ messages }, number) => {
    equal(unpaired(messages), undefined, `request ${number}`);
  });
};

export const unpaired = (messages: readonly Message[]): string | undefined => {
  let open: readonly string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      for (const { toolCallId } of message.content) {
        if (!open.includes(toolCallId)) return `a result without a tool call: ${toolCallId}`;
        open = open.filter((id) => id !== toolCallId);
      }
    } else {
      if (open.length > 0) return `tool calls without a result: ${open.join()}`;
      open = message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [];
    }
  }
  return open.length > 0 ? `tool calls without a result: ${open.join()}` : undefined;
};

/** Whatever a tab has seen is on a path of `GET /api/chat/:id`, and each path can be continued. */
const continuedByServer = async (world: World, seen: readonly Path[]): Promise<void> => {
  // A call that another one has replaced may still be ending.
  while ((await viewOf(world)).running !== undefined) await new Promise(setImmediate);
  const views = await viewsOf(world);
  const known = new Set(
    views.flatMap(({ messages }) => {
      const lines = linesIn(messages);
      return lines.map((_, at) => keyOf(lines.slice(0, at + 1)));
    }),
  );
  for (const path of seen) {
    ok(
      known.has(keyOf(path)),
      `the server has lost ${keyOf(path)}, it has ${[...known].join(' ')}`,
    );
  }
  for (const [at, { messages }] of views.entries()) {
    const text = `Probe ${at}`;
    const question = { id: `probe-${at}`, role: 'user', parts: [{ type: 'text', text }] };
    const before = world.requests.length;
    const response = await fetch(`${world.url()}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        id: 'chat-1',
        trigger: 'submit-message',
        messages: [...messages, question],
      }),
    });
    const body = await response.text();
    equal(response.status, 200, `path ${at} cannot be continued: ${body}`);
    continued(world, before, linesIn(messages), text);
  }
};

/** Continues after each answer that a tab has seen. */
const continuedByTabs = async (
  world: World,
  seen: readonly (readonly [string, Path])[],
  tabs: ReadonlyMap<string, Tab>,
): Promise<void> => {
  for (const [key, path] of seen) {
    const tab = tabs.get(key);
    await tab?.show(path.at(-1)?.text ?? '');
    const before = world.requests.length;
    await tab?.ask('Probe');
    equal(tab?.error(), undefined, `${key} cannot be continued`);
    continued(world, before, path, 'Probe');
  }
};

const continued = ({ requests }: World, before: number, path: Path, text: string): void => {
  equal(requests.length, before + 1, 'a probe asks the model once');
  same(
    linesOf(requests[before]?.messages ?? []),
    [...path, { role: 'user', text }],
    'a probe continues at another place',
  );
};
