import { equal } from 'node:assert/strict';
import { createLedger } from './check.js';
import { watched } from './rows.js';
import type { Client, Tab } from './tab.js';
import { createWorld, type Keeping, requestOf } from './world.js';

/** What a person does in one of the tabs. */
export interface ScriptStep {
  readonly tab: number;
  readonly act: 'ask' | 'regenerate' | 'edit' | 'show' | 'reload' | 'restart';
  /** Which question or answer, if there are several. */
  readonly pick: number;
  /** Whether the next step begins before this one has ended. */
  readonly isHurried: boolean;
}

/**
 * Plays a script in tabs of these clients on one conversation, and checks it as a row is checked. A tab is not used twice at
 * the same time.
 */
export const playScript = async (
  clients: readonly Client[],
  keeping: Keeping,
  steps: readonly ScriptStep[],
): Promise<void> => {
  const world = await createWorld(keeping, 6);
  const ledger = createLedger(world);
  const open = async (client: Client, like?: Tab): Promise<Tab> =>
    watched(await client.open(world, { like }), ledger.note);
  const tabs: Tab[] = [];
  for (const client of clients) {
    tabs.push(await open(client));
    if (tabs.length > 1) continue;
    await tabs[0]?.ask('Hi');
    await tabs[0]?.ask('1?');
  }
  const busy = new Map<number, Promise<void>>();
  const done: string[] = [];
  try {
    for (const [at, { tab: number, act, pick, isHurried }] of steps.entries()) {
      const place = number % clients.length;
      const client = clients[place];
      if (act === 'restart') {
        await Promise.all(busy.values());
        if (keeping === 'files') await world.restart();
        continue;
      }
      await busy.get(place);
      const tab = tabs[place];
      if (client === undefined || tab === undefined) continue;
      if (act === 'reload') {
        tab.close();
        tabs[place] = await open(client, tab);
        continue;
      }
      const acting = acted(tab, act, pick, `Q${at}`).then(() => {
        const lines = tab.shown().map(({ text }) => text);
        done.push(`${client.name} ${place} ${act}: ${lines.join(' ')}`);
        equal(tab.error(), undefined, done.join('\n'));
      });
      busy.set(place, acting);
      if (!isHurried) await Promise.all(busy.values());
    }
    await Promise.all(busy.values());
    await ledger.check();
  } catch (error) {
    await Promise.allSettled(busy.values());
    throw new Error(`${done.join('\n')}\n${String(error)}`, { cause: error });
  } finally {
    for (const tab of tabs) tab.close();
    await world.close();
  }
};

const acted = async (
  tab: Tab,
  act: Exclude<ScriptStep['act'], 'reload' | 'restart'>,
  pick: number,
  text: string,
): Promise<void> => {
  const lines = tab.shown();
  const [, ...questions] = lines.filter(({ role }) => role === 'user').map((line) => line.text);
  const answers = lines.filter((line) => requestOf(line) !== undefined).map((line) => line.text);
  const question = questions.at(pick % Math.max(1, questions.length));
  const answer = answers.at(pick % Math.max(1, answers.length));
  if (act === 'ask' || lines.at(-1)?.role !== 'assistant') return tab.ask(text);
  if (act === 'regenerate') return tab.regenerate();
  if (act === 'edit' && question !== undefined) return tab.edit(question, text);
  if (answer !== undefined) return tab.show(answer);
};
