import { type Message, textOf } from '../../../values/message.js';
import type { MemoryEntry, MemoryScope, NewMemory } from '../long-term-memory.js';
import { isRecord, parsedJson } from '../../../values/json.js';
import { namedSecrets, secretForms } from '../../../values/secret-forms.js';
import { map, type Observable } from 'rxjs';
import { type Access, entriesIn$, waitingSession } from './facts.js';

/** The messages of one call, which wait in the memory until their facts are extracted. */
export interface Turn {
  readonly callId: string;
  /** Absent if the facts belong to the user. */
  readonly sessionId?: string;
  readonly at: number;
  readonly messages: readonly TurnMessage[];
  /** The names of the tools of the call: no fact may name one. */
  readonly tools?: readonly string[];
  /** Extraction has failed for good: only `flush$(scope)` tries again. */
  readonly isParked?: true;
}

export interface TurnMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** A turn that waits, with the id of its entry. */
export interface WaitingTurn extends Turn {
  readonly entryId: string;
}

const maxUserText = 4_000;
const maxAssistantText = 500;

/** The messages to extract from. Tool results are left out, as are secrets and quotes: they are no statements. */
export const turnMessages = (
  asked: readonly Message[],
  answer: Message,
  secrets: readonly RegExp[],
): readonly TurnMessage[] =>
  [...asked, answer].flatMap((message) => {
    if (message.role === 'tool') return [];
    const { id, role } = message;
    const written = textOf(message);
    const text =
      role === 'user'
        ? cut(withoutQuotes(withoutSecrets(written, secrets)), maxUserText)
        : cut(withoutSecrets(written, secrets), maxAssistantText);
    return text.trim() === '' ? [] : [{ id, role, text }];
  });

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)} …`;

export const secretMark = '[secret]';

export const withoutSecrets = (text: string, secrets: readonly RegExp[]): string =>
  secrets.reduce((left, pattern) => left.replace(pattern, secretMark), text);

export const hasSecret = (text: string, secrets: readonly RegExp[]): boolean =>
  text.includes(secretMark) || withoutSecrets(text, secrets) !== text;

/** Credentials and numbers of accounts and cards: rather a fact too few. Each pattern takes linear time. */
export const commonSecrets: readonly RegExp[] = [
  // With its end or without.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  ...secretForms,
  ...namedSecrets,
  /\b(?:sk|pk|rk)[-_][\w-]{16,}/gi,
  /\b[\w-]{0,40}(?:password|secret|token|[_-]key)["']?\s*[:=]\s*(?:(["']).*?\1|\S+)/gi,
  /\b(?:password|passphrase|passcode|pin(?: code| number)?|cvv|api[ _-]?key|access token)\b(?:\s+[\p{L}\p{N}'’-]{1,30}){0,5}?\s*(?::|=|\bis\b)\s*\S+/giu,
  /\b\d(?:[ -]?\d){12,18}\b/g,
  /\b\d{3}-\d{2}-\d{4}\b/g,
  /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b/g,
];

const quoteMark = '[quote]';

/** Long quotes, quoted lines and code are material that the user shows, and no statements of the user. */
const withoutQuotes = (text: string): string =>
  text
    .replace(/(```|~~~)[\s\S]*?(?:\1|$)/g, quoteMark)
    .replace(/(?:^[ \t]*>.*(?:\n|$))+/gm, `${quoteMark}\n`)
    .replace(/["“„«][^"“”„«»]{80,}(?:["”»]|$)/g, quoteMark);

/** The entry of a turn. It is an entry of the user, who may not see it, and is deleted with the user. */
export const entryOfTurn = (turn: Turn): NewMemory => ({
  id: `turn/${turn.callId}${turn.isParked === true ? '/parked' : ''}`,
  text: JSON.stringify(turn),
  kind: 'turn',
  createdAt: turn.at,
  metadata: turn.sessionId === undefined ? {} : { sessionId: turn.sessionId },
});

export const waitingScope = (userId: string): MemoryScope => ({
  userId,
  sessionId: waitingSession,
});

/** Emits the turns of a user that wait, oldest first. */
export const waitingTurns$ = (access: Access, userId: string): Observable<readonly WaitingTurn[]> =>
  entriesIn$(access, waitingScope(userId)).pipe(
    map((entries) => [...entries].reverse().flatMap(turnOf)),
  );

/** A damaged entry is skipped, and stays in the memory. */
const turnOf = ({ id, text }: MemoryEntry): readonly WaitingTurn[] => {
  const value = parsedJson(text);
  return isTurn(value) ? [{ ...value, entryId: id }] : [];
};

/** Checks only some fields, as this package wrote the rest. */
const isTurn = (value: unknown): value is Turn =>
  isRecord(value) &&
  typeof value['callId'] === 'string' &&
  typeof value['at'] === 'number' &&
  Array.isArray(value['messages']) &&
  value['messages'].every(
    (it) => isRecord(it) && ['id', 'role', 'text'].every((name) => typeof it[name] === 'string'),
  );
