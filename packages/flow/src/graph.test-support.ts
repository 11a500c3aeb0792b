import type { CallOptions } from 'millrace';
import type { CompiledGraph, CompiledNode } from './run-graph.js';
import type { Scope } from './scope.js';
import { done, type Work } from './work.js';
import { of } from 'rxjs';

/** A scope in which nothing is known but the query. */
export const scopeOf = (more: Partial<Scope> = {}, options: CallOptions = {}): Scope => ({
  sys: { query: '?', sessionId: '', history: [], metadata: {} },
  input: [],
  outputs: new Map(),
  items: new Map(),
  variables: new Map(),
  report: () => undefined,
  options,
  streams: false,
  idPrefix: '',
  ...more,
});

/** A node of `a>b` pairs, `a` leading to all of its own unless `work` says otherwise. */
export const graphOf = (
  ways: string,
  works: Readonly<Record<string, Work>> = {},
  concurrency = 5,
): CompiledGraph => {
  const pairs = ways.split(' ').map((way) => way.split('>'));
  const ids = [...new Set(pairs.flat())];
  const nodes = ids.map((id): CompiledNode => {
    const upstream = pairs.flatMap(([from = '', to]) => (to === id ? from : []));
    return {
      id,
      upstream,
      reads: upstream,
      always: pairs.flatMap(([from, to = '']) => (from === id ? to : [])),
      isAsync: Object.hasOwn(works, id),
      isMessage: true,
      streams: false,
      work$: works[id] ?? (() => of(done({ text: id }))),
    };
  });
  return { nodes, concurrency };
};
