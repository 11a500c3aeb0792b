import type { MillraceError } from 'millrace';
import { refuse } from './refusals.js';

/**
 * A response: the part of a call from its start, or from decisions, to its next approval requests or its end. It can be
 * rebuilt from the record of the call.
 */
export interface ResponseRef {
  readonly callId: string;
  /** The numbers of the questions that earlier requests decided, one list per request. */
  readonly decided: readonly (readonly number[])[];
}

/** `resp_`, the id of the call, and the numbers of the decided questions: `resp_3f2a.1.2_3`. */
export const responseIdOf = (ref: ResponseRef): string => `resp_${placeOf(ref)}`;

/** The prefix of the ids of its items, after the kind of the item. */
export const placeOf = ({ callId, decided }: ResponseRef): string =>
  [callId, ...decided.map((numbers) => numbers.join('_'))].join('.');

export const refOf = (id: unknown, param?: string): ResponseRef => {
  const text = typeof id === 'string' && id.length <= maxLength ? id : '';
  const [, callId, rest = ''] = /^resp_([\w-]+)((?:\.\d{1,4}(?:_\d{1,4})*)*)$/u.exec(text) ?? [];
  if (callId === undefined) throw noSuchResponse(param);
  const [, ...lists] = rest.split('.');
  return { callId, decided: lists.map((numbers) => numbers.split('_').map(Number)) };
};

/** The response after decisions. If its id would be too long, the oldest decisions are dropped from it, which has no other effect. */
export const refAfter = (
  { callId, decided }: ResponseRef,
  numbers: readonly number[],
): ResponseRef => {
  const ref = { callId, decided: [...decided, numbers] };
  if (responseIdOf(ref).length <= maxLength) return ref;
  if (decided.length > 0) return refAfter({ callId, decided: decided.slice(1) }, numbers);
  throw refuse('Decide on fewer tool calls in one request.', 'input');
};

/** The maximum length of an id in a path. */
const maxLength = 128;

export const noSuchResponse = (param: string | null = null): MillraceError =>
  refuse('There is no such response.', param, 'not_found', 404);
