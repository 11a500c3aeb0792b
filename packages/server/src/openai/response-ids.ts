import type { MillraceError } from '@millrace/core';
import { refuse } from './refusals.js';

/**
 * A response: a call from its beginning, or from decisions on, up to its next approval requests or its end. All of it is in the
 * record of the call.
 */
export interface ResponseRef {
  readonly callId: string;
  /** The numbers of the questions that requests have decided before it, one list for each request. */
  readonly decided: readonly (readonly number[])[];
}

/** `resp_`, the id of the call, and the numbers of the decided questions: `resp_3f2a.1.2_3`. */
export const responseIdOf = (ref: ResponseRef): string => `resp_${placeOf(ref)}`;

/** Begins the ids of its items. */
export const placeOf = ({ callId, decided }: ResponseRef): string =>
  [callId, ...decided.map((numbers) => numbers.join('_'))].join('.');

export const refOf = (id: unknown, param?: string): ResponseRef => {
  const text = typeof id === 'string' && id.length <= maxLength ? id : '';
  const [, callId, rest = ''] = /^resp_([\w-]+)((?:\.\d{1,4}(?:_\d{1,4})*)*)$/u.exec(text) ?? [];
  if (callId === undefined) throw noSuchResponse(param);
  const [, ...lists] = rest.split('.');
  return { callId, decided: lists.map((numbers) => numbers.split('_').map(Number)) };
};

/** The response after decisions. The oldest ones are left out of a long id, and change nothing but the id. */
export const refAfter = (
  { callId, decided }: ResponseRef,
  numbers: readonly number[],
): ResponseRef => {
  const ref = { callId, decided: [...decided, numbers] };
  if (responseIdOf(ref).length <= maxLength) return ref;
  if (decided.length > 0) return refAfter({ callId, decided: decided.slice(1) }, numbers);
  throw refuse('Decide on fewer tool calls in one request.', 'input');
};

/** Of an id in a path. */
const maxLength = 128;

export const noSuchResponse = (param: string | null = null): MillraceError =>
  refuse('There is no such response.', param, 'not_found', 404);
