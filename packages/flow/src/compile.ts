import { MillraceError, type MillraceErrorOptions, isMillraceError } from '@millrace/core';
import { catchError, defer, of } from 'rxjs';
import { agentWork } from './components/agent.js';
import { categorizeWork } from './components/categorize.js';
import { codeWork } from './components/code.js';
import { iterateWork } from './components/iterate.js';
import { messageWork } from './components/message.js';
import { retrievalWork } from './components/retrieval.js';
import { switchWork } from './components/switch.js';
import { toolWork } from './components/tool.js';
import { own } from './component-problems.js';
import type { FlowComponent, FlowComponents } from './document.js';
import { graphOf, topological } from './graph.js';
import { innerOf, onErrorOf } from './kinds.js';
import { render, templateOf } from './render.js';
import type { Equipment } from './resources.js';
import type { CompiledGraph } from './run-graph.js';
import { speakersIn } from './speakers.js';
import { templatesOf } from './templates-of.js';
import { done, type Work } from './work.js';

/** Readies components that have been checked. */
export const compileGraph = (
  components: FlowComponents,
  equipment: Equipment,
  isInner = false,
): CompiledGraph => {
  const graph = graphOf(components);
  // What an item says is not yet what the flow says.
  const speakers = isInner ? new Set<string>() : speakersIn(graph);
  const order = topological(graph);
  const nodes = order.flatMap((id) => {
    const component = graph.components.get(id);
    if (component === undefined) return [];
    const { component_name: name } = component;
    const read = namedIn(component);
    return {
      id,
      upstream: [...(graph.upstream.get(id) ?? [])],
      reads: order.filter((other) => read.has(other)),
      always: [...(graph.always.get(id) ?? [])],
      takesTime: !quick.has(name),
      isMessage: name === 'message',
      speaks: speakers.has(id),
      work$: guarded(id, component, workOf(id, component, equipment)),
    };
  });
  return { nodes, concurrency: equipment.concurrency };
};

const quick: ReadonlySet<string> = new Set(['begin', 'switch', 'message']);

/** The components whose outputs the templates of one name, with those within it. */
const namedIn = (component: FlowComponent): ReadonlySet<string> =>
  new Set([
    ...templatesOf(component).flatMap(({ text }) =>
      templateOf(text).flatMap((part) =>
        typeof part === 'object' && part.of === 'component' ? part.id : [],
      ),
    ),
    ...Object.values(innerOf(component) ?? {}).flatMap((inner) => [...namedIn(inner)]),
  ]);

const workOf = (id: string, component: FlowComponent, equipment: Equipment): Work => {
  const { resources } = equipment;
  switch (component.component_name) {
    case 'begin':
      return ({ sys }) => of(done({ text: sys.query }));
    case 'agent': {
      const { params } = component;
      return agentWork(id, params, given(own(resources.models, params.llm_id)), equipment);
    }
    case 'categorize': {
      const { params } = component;
      return categorizeWork(id, params, given(own(resources.models, params.llm_id)));
    }
    case 'retrieval': {
      const { params } = component;
      return retrievalWork(id, params, given(own(resources.retrievers, params.retriever_id)));
    }
    case 'code': {
      const { params } = component;
      return codeWork(id, params, given(own(resources.code, params.function)));
    }
    case 'tool': {
      const { params } = component;
      const tool = resources.tools?.find(({ name }) => name === params.tool);
      return toolWork(id, params, given(tool));
    }
    case 'switch':
      return switchWork(component.params);
    case 'message':
      return messageWork(component.params);
    case 'iterate': {
      const { params } = component;
      return iterateWork(id, params, compileGraph(params.components, equipment, true));
    }
  }
};

/** What a checked document names is there. */
const given = <T>(resource: T | undefined): T => {
  if (resource !== undefined) return resource;
  throw new MillraceError('invalidState', 'A flow is compiled that has not been checked.');
};

/** Says which component an error is of, or does what the component does where it fails. */
const guarded = (id: string, component: FlowComponent, work: Work): Work => {
  const onError = onErrorOf(component);
  const fallback = templateOf(onError?.value ?? '');
  return (scope) =>
    defer(() => work(scope)).pipe(
      catchError((error: unknown) => {
        if (onError === undefined) throw errorOf(id, error);
        return of({
          ...done({ text: render(fallback, scope) }),
          ...(onError.to !== undefined && { to: onError.to }),
        });
      }),
    );
};

const errorOf = (id: string, cause: unknown): MillraceError => {
  const message = `In the component '${id}': ${cause instanceof Error ? cause.message : String(cause)}`;
  if (!isMillraceError(cause)) return new MillraceError('unknown', message, { cause });
  const { code, retryable, userMessage, partial, retryAfterMs, status, requestId, over } = cause;
  const details: MillraceErrorOptions = Object.fromEntries(
    Object.entries({ partial, retryAfterMs, status, requestId, over }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  return new MillraceError(code, message, { cause, retryable, userMessage, ...details });
};
