import { concatMap, firstValueFrom, from, timeout } from 'rxjs';
import { type Cell, playCell } from '../table.js';
import { createLedger } from './check.js';
import { branchRows } from './rows/branches.js';
import { requestRows } from './rows/requests.js';
import type { ConversationRow, ConversationRows } from './rows/scene.js';
import { tabRows } from './rows/tabs.js';
import { waitingRows } from './rows/waiting.js';
import type { Client, Opening, Tab } from './tab.js';
import { createWorld, type Keeping } from './world.js';

const longestMs = 15_000;

/** The rows of the table of conversations. */
export const conversationRows: ConversationRows = {
  ...tabRows,
  ...branchRows,
  ...waitingRows,
  ...requestRows,
};

export const conversationIds = Object.keys(conversationRows);

/** Plays a row with a client. */
export const playConversation = (id: string, client: Client): Promise<Cell> => {
  const row = conversationRows[id];
  if (row === undefined) throw new Error(`There is no row '${id}'.`);
  return playCell(row, client, client.missing?.[id] ?? (() => played(row, client)));
};

/** Plays it once for each place that conversations are kept at. */
const played = async (row: ConversationRow, client: Client): Promise<string> => {
  const results: string[] = [];
  for (const keeping of row.keepings ?? (['process', 'files'] as const)) {
    results.push(await playKept(row, client, keeping));
  }
  return [...new Set(results)].join(', ');
};

const playKept = async (
  { options, play }: ConversationRow,
  client: Client,
  keeping: Keeping,
): Promise<string> => {
  const world = await createWorld(keeping, client.aiSdk ?? 6, { ...client.options, ...options });
  const ledger = createLedger(world);
  const tabs: Tab[] = [];
  const open = async (opening?: Opening): Promise<Tab> => {
    const tab = await client.open(world, opening);
    const noted = watched(tab, ledger.note);
    tabs.push(tab);
    return noted;
  };
  const restart = async (): Promise<void> => {
    if (keeping === 'process') ledger.forget();
    await world.restart();
  };
  try {
    const played$ = from(play({ world, client, keeping, restart, open })).pipe(
      concatMap(async (ends) => {
        await ledger.check(client);
        return ends;
      }),
      timeout(longestMs),
    );
    return await firstValueFrom(played$);
  } finally {
    for (const tab of tabs) tab.close();
    await world.close();
  }
};

/** The same tab, with what it shows after each action that ended well kept. */
export const watched = (tab: Tab, note: (tab: Tab) => void): Tab => {
  const noted =
    <Args extends readonly unknown[]>(act: (...args: Args) => Promise<void>) =>
    async (...args: Args): Promise<void> => {
      await act(...args);
      if (tab.error() === undefined) note(tab);
    };
  return Object.assign(tab, {
    ask: noted(tab.ask),
    askWith: noted(tab.askWith),
    regenerate: noted(tab.regenerate),
    edit: noted(tab.edit),
    show: noted(tab.show),
    bring: noted(tab.bring),
  });
};
