import type { StoreArguments } from '../command-line/arguments.js';
import { shortId } from './short-id.js';

/** Writes the command that does something with a run of this store. */
export const commandFor = (
  command: 'fork' | 'resume' | 'replay',
  callId: string,
  { store }: StoreArguments,
): string => `millrace ${command} ${shortId(callId)}${storeOption(store)}`;

/** The option with which a command finds the place again; empty where it does so by itself. What is in the URL of a database may be secret. */
export const storeOption = (store: string | false | undefined): string => {
  if (typeof store !== 'string') return '';
  return /^postgres(?:ql)?:\/\//.test(store)
    ? ' --store postgres://…'
    : ` --store ${quoted(store)}`;
};

const quoted = (word: string): string =>
  /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
