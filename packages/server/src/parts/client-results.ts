import type { Rule } from 'millrace/values';
import { filter, identity, type MonoTypeOperatorFunction } from 'rxjs';
import type { Part } from './part.js';

/** The results of suspended tools in the client's request. */
export interface ClientResultOptions {
  /**
   * Ids of the tool calls whose results the request contains, from `inputOfUiMessages` or `inputOfAgUi`. The client
   * already shows these results, so the stream omits them. Default: none.
   */
  readonly clientResults?: readonly string[] | undefined;
}

export const clientResultRules: Readonly<Record<keyof ClientResultOptions, Rule>> = {
  clientResults: [
    (ids) => Array.isArray(ids) && ids.every((id) => typeof id === 'string'),
    'a list of ids',
  ],
};

/** Omits these tool calls. A call reports supplied results in iteration 0, before its first model request. */
export const withoutClientResults = ({
  clientResults = [],
}: ClientResultOptions): MonoTypeOperatorFunction<Part> => {
  if (clientResults.length === 0) return identity;
  const endings = clientResults.map((id) => `/0/${id}`);
  return filter(
    (part) =>
      !('id' in part && part.type.startsWith('tool') && endings.some((it) => part.id.endsWith(it))),
  );
};
