/** Gives back what was taken. Only the first call has an effect. */
export type GiveBack = () => void;

/** Limits how many resources are held at a time, by all clients and by each client. */
export interface Quota {
  /** Takes one, or returns the limit that is reached. Without a key, the client counts for `all` only. */
  readonly take: (client: string | undefined) => GiveBack | 'all' | 'client';
}

/** Prevents a client from using up what all others need: `perClient` applies in addition to `all`. */
export const createQuota = (all: number, perClient: number): Quota => {
  const held = new Map<string | undefined, number>();
  let total = 0;
  const add = (client: string | undefined, count: 1 | -1): void => {
    const now = (held.get(client) ?? 0) + count;
    total += count;
    if (now === 0) held.delete(client);
    else held.set(client, now);
  };
  return {
    take: (client) => {
      if (client !== undefined && (held.get(client) ?? 0) >= perClient) return 'client';
      if (total >= all) return 'all';
      let isHeld = true;
      add(client, 1);
      return () => {
        if (isHeld) add(client, -1);
        isHeld = false;
      };
    },
  };
};
