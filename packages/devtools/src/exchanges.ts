import type { WatchedExchange } from '@millrace/wire/watch';

/** The requests to providers, and their responses, of inspected calls. */
export interface Exchanges {
  /** Notes one of those that a model sends for a request: `index` counts its attempts. */
  note(requestId: string, exchange: WatchedExchange, index: number): void;
  /** All attempts of a request; none if it is not kept. */
  of(requestId: string): readonly WatchedExchange[];
}

/** Keeps the newest requests, up to so many characters. Pages ask for one when they show it. */
export const createExchanges = (mostCharacters = 16_000_000): Exchanges => {
  const kept = new Map<string, WatchedExchange[]>();
  let size = 0;
  return {
    note: (requestId, exchange, index) => {
      const list = kept.get(requestId) ?? [];
      kept.set(requestId, list);
      size += sizeOf(exchange) - sizeOf(list[index]);
      list[index] = exchange;
      for (const [oldest, exchanges] of kept) {
        if (size <= mostCharacters) break;
        kept.delete(oldest);
        for (const each of exchanges) size -= sizeOf(each);
      }
    },
    of: (requestId) => kept.get(requestId) ?? [],
  };
};

const sizeOf = (exchange: WatchedExchange | undefined): number => {
  if (exchange === undefined) return 0;
  const { body, response } = exchange;
  return body.length + (response?.body.length ?? 0);
};
