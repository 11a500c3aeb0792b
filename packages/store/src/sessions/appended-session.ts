import type { MillraceError } from 'millrace';
import {
  appendedState,
  searchTextOf,
  type SessionChange,
  type StoredSession,
} from 'millrace/sessions';
import { isRecord, parsedJson } from 'millrace/values';

/** A session as databases store it: the last state that was saved as a whole, and what was appended since. */
export interface LoadedSession {
  readonly version: number;
  readonly state: string;
  readonly change:
    | { readonly entries: readonly string[]; readonly rest: string; readonly head: string | null }
    | undefined;
}

export const sessionOf = (
  { version, state: stateText, change }: LoadedSession,
  damaged: () => MillraceError,
): StoredSession => {
  const parsed = (text: string): unknown => {
    const value = parsedJson(text);
    if (value === undefined) throw damaged();
    return value;
  };
  const state = parsed(stateText);
  if (change === undefined) return { version, state };
  const entries = change.entries.map(parsed).filter(isEntry);
  const rest = parsed(change.rest);
  if (entries.length !== change.entries.length || !isRest(rest)) throw damaged();
  return { version, state: appendedState(state, { entries, head: change.head, rest }) };
};

/** Checks only the shape, as this package wrote the rest. */
const isEntry = (value: unknown): value is SessionChange['entries'][number] =>
  isRecord(value) && (isRecord(value['call']) || (isRecord(value['message']) && 'after' in value));

const isRest = (value: unknown): value is SessionChange['rest'] => isRecord(value);

/** The text of a message as a search compares it, without the empty title before it. */
export const searchTextIn = (message: unknown): string =>
  searchTextOf({ messages: [message] }).slice(1);

/** The texts of the messages among entries. Calls have empty ones. */
export const searchTextsIn = (entries: SessionChange['entries']): readonly string[] =>
  entries.map((entry) => searchTextIn('message' in entry ? entry.message : undefined));
