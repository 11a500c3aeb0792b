import { deepEqual } from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type RowId, rows } from './rows.js';
import { playOn, type Stage } from './stage.js';
import { type Cell, playCell } from './table.js';

/** Plays a client, asserts what it ended with, and resolves to that in a few words. */
export type Check = (stage: Stage) => Promise<string>;

/** A client. */
export interface Column {
  readonly name: string;
  /** The package and its version. */
  readonly version: string;
  readonly aiSdk?: 6 | 7;
  /** A cell without a check has the reason why the protocol has no such thing. */
  readonly cells: Readonly<Record<RowId, Check | string>>;
}

/** Plays one row with one client. */
export const playRow = (id: RowId, column: Column): Promise<Cell> => {
  const cell = column.cells[id];
  const { aiSdk = 6 } = column;
  return playCell(
    rows[id],
    column,
    typeof cell === 'string' ? cell : () => playOn(rows[id].scene, aiSdk, cell),
  );
};

/** A picture, in base64. */
export const picture = 'AAEC';

export const picturesIn = ({ model }: Stage): readonly unknown[] =>
  (model.requests[0]?.messages[0]?.content ?? []).filter(({ type }) => type === 'image');

export const thePicture = [
  { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: picture } },
];

/** The text of the messages that the model got last. */
export const textsAsked = ({ model }: Stage): readonly string[] =>
  (model.requests.at(-1)?.messages ?? []).map(({ content }) =>
    content.map((block) => (block.type === 'text' ? block.text : block.type)).join(''),
  );

/** The reason of a denial. */
export const reason = 'Too much.';

/** The last message of the last request to the model: the results of tools. */
export const resultsAsked = ({ model }: Stage): string =>
  JSON.stringify(model.requests.at(-1)?.messages.at(-1));

/** Fails unless both are the same as JSON. */
export const same = (actual: unknown, expected: unknown, message?: string): void => {
  const [given, wanted] = [jsonOf(actual), jsonOf(expected)];
  if (message === undefined) deepEqual(given, wanted);
  else if (!isDeepStrictEqual(given, wanted)) {
    throw new Error(`${message}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  }
};

// An array keeps its length, and `undefined` is not lost from it.
const jsonOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify([value], (_, it: unknown) => (it === undefined ? 'undefined' : it)));
