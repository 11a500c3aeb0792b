import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CallQuery, StoredCall } from 'millrace/journal';
import type { CallIndex } from './call-index.js';
import {
  type Calls,
  type FoundCall,
  listCalls,
  type ListOptions,
  type NamedCall,
} from './list-calls.js';
import type { SessionIndex } from './session-index.js';

/** Lists calls, corrects their entries in the index, and shows all those that match unless the options say otherwise. */
export const listFrom =
  (root: string, index: CallIndex, reading: Pick<ListOptions, 'laterSegments' | 'leaseMs'>) =>
  (calls: Calls, more: Partial<ListOptions> = {}): AsyncGenerator<readonly StoredCall[]> =>
    listCalls(root, calls, {
      ...reading,
      ...{ pages: [20, 50], matches: () => true, isShown: index.isShown },
      ...more,
    });

export interface CallSearch {
  readonly root: string;
  readonly index: CallIndex;
  readonly sessionIndex: SessionIndex;
  readonly list: ReturnType<typeof listFrom>;
}

/** The calls that match a query, page by page. */
export async function* findCalls(
  search: CallSearch,
  { sessionId, isUnfinished, writtenUntil = Infinity }: CallQuery,
): AsyncGenerator<readonly StoredCall[]> {
  const { index, sessionIndex, list } = search;
  const matches = ({ call, endedAt: end }: FoundCall): boolean =>
    call.updatedAt <= writtenUntil && !(isUnfinished === true && end !== undefined);
  if (sessionId !== undefined) {
    const all = await sessionIndex.of(sessionId);
    const names = isUnfinished && new Set(await index.unfinishedNames());
    const entries = names ? all.filter(({ name }) => names.has(name)) : all;
    // A session usually needs only its latest calls.
    yield* list(entries, { pages: [5], matches, isShown: isShownIn(search, sessionId) });
  } else if (isUnfinished === true) {
    yield* list(await index.unfinished(), { matches });
  } else {
    yield* list(index.calls(writtenUntil), { matches });
  }
}

/** Deletes the entry of a call that does not exist any more. */
const isShownIn =
  ({ root, index, sessionIndex }: CallSearch, sessionId: string): ListOptions['isShown'] =>
  async ({ name }: NamedCall, call) => {
    if (call === undefined && !existsSync(join(root, name))) {
      const forget = () => sessionIndex.forget(sessionId, new Set([name]));
      await index.whileClosed(name, forget).catch(() => undefined);
    }
    return call !== undefined;
  };
