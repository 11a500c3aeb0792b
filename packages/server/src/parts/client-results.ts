import type { Rule } from '@millrace/core/adapter';
import { filter, identity, type MonoTypeOperatorFunction } from 'rxjs';
import type { Part } from './part.js';

/** Which results of suspended tools the client has brought. */
export interface ClientResultOptions {
  /**
   * Ids of the tool calls whose results came with the client's request, as `inputOfUiMessages` and `inputOfAgUi` found them. The client shows
   * them already, so the stream leaves them out. Default: none.
   */
  readonly clientResults?: readonly string[];
}

/** What these options may be. */
export const clientResultRules: Readonly<Record<keyof ClientResultOptions, Rule>> = {
  clientResults: [
    (ids) => Array.isArray(ids) && ids.every((id) => typeof id === 'string'),
    'a list of ids',
  ],
};

/** Leaves out the tools whose results the client has brought: a call shows such results before its first iteration. */
export const withoutClientResults = ({
  clientResults = [],
}: ClientResultOptions): MonoTypeOperatorFunction<Part> => {
  if (clientResults.length === 0) return identity;
  const endings = clientResults.map((id) => `/0/${id}`);
  return filter((part) => !isOfTool(part) || !endings.some((it) => part.id.endsWith(it)));
};

const isOfTool = (part: Part): part is Part & { readonly id: string } =>
  part.type.startsWith('tool') && 'id' in part;
