import type { StoreArguments } from '../command-line/arguments.js';
import { shortId } from './run-id.js';

/** The command line to fork, resume or replay a run of this store. */
export const commandFor = (
  command: 'fork' | 'resume' | 'replay',
  callId: string,
  { store }: StoreArguments,
): string => `npx @millrace/cli ${command} ${shortId(callId)}${storeOption(store)}`;

/** The option that selects the store again; empty for the default. Hides database URLs, which may contain secrets. */
export const storeOption = (store: string | false | undefined): string => {
  if (typeof store !== 'string') return '';
  return /^postgres(?:ql)?:\/\//.test(store)
    ? ' --store postgres://…'
    : ` --store ${quoted(store)}`;
};

const quoted = (word: string): string =>
  /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
