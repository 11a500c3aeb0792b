import { MillraceError } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';
import { isBlock, isContentBlock, textOf } from '../../values/message.js';

/** A stored session, as a list shows it. */
export interface SessionSummary {
  readonly id: string;
  readonly title?: string;
  /** When its state was saved, in milliseconds since the epoch, with decimals if the store knows them. */
  readonly savedAt: number;
}

export interface SessionQuery {
  /** The beginning of the ids, such as the name of a user. */
  readonly prefix?: string;
  /** A part of the title or of the text of a message on any branch. Ignores case; no character is special. */
  readonly search?: string;
  /** Continues after this session of the previous page, even if it was saved or removed meanwhile. */
  readonly before?: Pick<SessionSummary, 'savedAt' | 'id'>;
  /** Default: 50. */
  readonly limit?: number;
}

/** A valid query. `search` is in the form of `searchTextOf`; an empty string matches every session, as `prefix` does. */
export interface CheckedSessionQuery extends Required<Omit<SessionQuery, 'before'>> {
  readonly before: SessionQuery['before'];
}

/** Validates a query of `SessionStore.find$`. Throws `invalidRequest`. */
export const checkSessionQuery = (query: SessionQuery = {}): CheckedSessionQuery => {
  const { prefix = '', search = '', before, limit = 50 } = query;
  if (typeof prefix !== 'string') throw invalid('prefix', 'a string');
  if (typeof search !== 'string') throw invalid('search', 'a string');
  if (!Number.isInteger(limit) || limit < 1) throw invalid('limit', 'a positive integer');
  if (before !== undefined && !isCursor(before)) {
    throw invalid('before', '{ savedAt, id } of a session that was found');
  }
  return { prefix, search: folded(search), before, limit };
};

const isCursor = (before: unknown): boolean =>
  isRecord(before) && Number.isFinite(before['savedAt']) && typeof before['id'] === 'string';

const invalid = (name: string, what: string): MillraceError =>
  new MillraceError('invalidRequest', `The query of sessions: '${name}' must be ${what}.`);

export const titleOf = (state: unknown): { readonly title?: string } =>
  isRecord(state) && typeof state['title'] === 'string' ? { title: state['title'] } : {};

/** The title and the texts of all branches of a session state, in the form in which a search compares them. */
export const searchTextOf = (state: unknown): string => {
  const { messages, branches } = isRecord(state) ? state : {};
  const onBranches = listOf(branches).map((entry) => isRecord(entry) && entry['message']);
  const texts = [...listOf(messages), ...onBranches].map(textIn);
  return [titleOf(state).title ?? '', ...texts].map(folded).join(separator);
};

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const textIn = (message: unknown): string => {
  const content = listOf(isRecord(message) && message['content']);
  return textOf({ content: content.filter(isBlock).filter(isContentBlock) });
};

/** A noncharacter, which no search contains: a match never spans two texts. */
const separator = '\ufdd1';

/** Upper case folds more than lower case: `ß` and `SS`, both forms of a small sigma. */
const folded = (text: string): string =>
  text.toUpperCase().normalize('NFC').replaceAll(unsearchable, '\ufffd');

/** Databases cannot store NUL and lone surrogates, and use U+FDD0 to escape them. */
// eslint-disable-next-line no-control-regex
const unsearchable = /[\u0000\ufdd0\ufdd1]|\p{Surrogate}/gu;

/** A page of sessions, newest first. Those with equal times are in descending order of their ids. */
export const pageOf = <T extends SessionSummary>(
  sessions: readonly T[],
  { prefix, before, limit }: CheckedSessionQuery,
  matches: (session: T) => boolean,
): readonly T[] =>
  sessions
    .filter(({ id }) => id.startsWith(prefix))
    .filter((session) => before === undefined || isNewer(before, session))
    .filter(matches)
    .sort((one, other) => (isNewer(one, other) ? -1 : 1))
    .slice(0, limit);

type Place = Pick<SessionSummary, 'savedAt' | 'id'>;

const isNewer = (one: Place, other: Place): boolean =>
  one.savedAt === other.savedAt ? one.id > other.id : one.savedAt > other.savedAt;
