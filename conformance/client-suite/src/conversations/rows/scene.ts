import { equal, notEqual, ok } from 'node:assert/strict';
import type { ServeOptions } from '@millrace/server/node';
import { same } from '../../column.js';
import { type Client, isWell, type Opening, type Tab } from '../tab.js';
import { fieldOf, type Keeping, type World } from '../world.js';

/** What a row plays with. */
export interface Scene {
  readonly client: Client;
  readonly world: World;
  readonly keeping: Keeping;
  readonly restart: () => Promise<void>;
  /** Opens a tab, whose answers are kept for the check at the end. */
  readonly open: (opening?: Opening) => Promise<Tab>;
}

/** A row of the table of conversations. */
export interface ConversationRow {
  readonly name: string;
  readonly about: string;
  /** Where the server of the row keeps its conversations. Default: both. */
  readonly keepings?: readonly Keeping[];
  readonly options?: ServeOptions;
  /** Resolves to what the client ended with, in a few words. */
  readonly play: (scene: Scene) => Promise<string>;
}

export type ConversationRows = Readonly<Record<string, ConversationRow>>;

export const textsOf = (tab: Tab): readonly string[] => tab.shown().map(({ text }) => text);

export const shows = (tab: Tab, ...texts: readonly string[]): void => {
  isWell(tab);
  same(textsOf(tab), texts);
};

/** Two answers, in a tab. */
export const twoAnswers = async (open: Scene['open']): Promise<Tab> => {
  const tab = await open();
  await tab.ask('Hi');
  await tab.ask('1?');
  shows(tab, 'Hi', 'A0', '1?', 'A1');
  return tab;
};

export const refusedWith = async (
  { world, client }: Scene,
  tab: Tab,
  act: (tab: Tab) => Promise<void>,
): Promise<void> => {
  const before = world.requests.length;
  await act(tab);
  notEqual(tab.error(), undefined, 'the client reports an error');
  equal(world.requests.length, before, 'the model is not asked');
  const { status, json } = world.last();
  equal(status, client.refusal ?? 409);
  if (client.refusal === undefined) ok(fieldOf(json, 'head') !== undefined, JSON.stringify(json));
};
