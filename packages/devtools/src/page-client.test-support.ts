import type { FeedLine, LogItem } from './page/protocol.js';

/** What a page does, without a browser. */
export interface PageClient {
  readonly lines: readonly FeedLine[];
  readonly items: (id: string) => readonly LogItem[];
  /** Waits until the lines fulfil a condition. */
  readonly until: (isMet: () => boolean) => Promise<void>;
  readonly ask: (method: string, path: string, body?: unknown) => Promise<Response>;
  readonly leave: () => void;
}

/** Opens the feed of an address that devtools have printed. */
export const openPage = async (address: string): Promise<PageClient> => {
  const { origin, hash } = new URL(address);
  const headers = { authorization: `Bearer ${hash.replace('#token=', '')}` };
  const leaving = new AbortController();
  const { signal } = leaving;
  const response = await fetch(`${origin}/api/feed`, { headers, signal });
  const lines: FeedLine[] = [];
  const waiting = new Set<() => void>();
  const read = async (): Promise<void> => {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      const parts = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts.map((line) => JSON.parse(line) as FeedLine));
      for (const look of [...waiting]) look();
    }
  };
  read().catch(() => undefined);
  const until = (isMet: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isMet()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  await until(() => lines.length > 0);
  return {
    lines,
    items: (id) => lines.flatMap((it) => (it.line === 'log' && it.id === id ? it.items : [])),
    until,
    ask: (method, path, body) =>
      fetch(`${origin}/api/${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    leave: () => {
      leaving.abort();
    },
  };
};
