import { MillraceError, type Model } from 'millrace';
import { catchError, defer, of } from 'rxjs';
import { modelWithRetry } from './attempts.js';
import { innerOf, onErrorOf } from './branches.js';
import { ownOf } from './component-problems.js';
import { agentWork } from './components/agent.js';
import { categorizeWork } from './components/categorize.js';
import { codeWork } from './components/code.js';
import { httpWork } from './components/http.js';
import { humanWork } from './components/human.js';
import { iterateWork } from './components/iterate.js';
import { loopWork } from './components/loop.js';
import { retrievalWork } from './components/retrieval.js';
import { setWork } from './components/set.js';
import { switchWork } from './components/switch.js';
import { toolWork } from './components/tool.js';
import type { AgentParams, FlowComponent, FlowComponents, MessageParams } from './document.js';
import { flowErrorOf, toError } from './flow-error.js';
import { graphOf, topological } from './graph.js';
import { outputOf, render, templateOf } from './render.js';
import type { CompileOptions } from './resources.js';
import type { CompiledGraph } from './run-graph.js';
import { streamingAgents } from './streaming-agents.js';
import { templatesOf } from './templates-of.js';
import { done, type Work } from './work.js';

export const compileGraph = (
  components: FlowComponents,
  options: CompileOptions,
  isInner = false,
): CompiledGraph => {
  const graph = graphOf(components);
  // Messages inside an iteration are not part of the flow's answer.
  const streaming = isInner ? new Set<string>() : streamingAgents(graph);
  const order = topological(graph);
  const nodes = order.flatMap((id) => {
    const component = graph.components.get(id);
    if (component === undefined) return [];
    const { component_name: name } = component;
    const read = referencesIn(component);
    return {
      id,
      upstream: [...(graph.upstream.get(id) ?? [])],
      reads: order.filter((other) => read.has(other)),
      always: [...(graph.always.get(id) ?? [])],
      isAsync: !synchronous.has(name),
      isMessage: name === 'message',
      streams: streaming.has(id),
      work$: withErrorHandling(id, component, workOf(id, component, options)),
    };
  });
  return { nodes, concurrency: options.concurrency };
};

const synchronous: ReadonlySet<string> = new Set(['begin', 'switch', 'message', 'set']);

/** The components that the templates of a component, or of components inside it, refer to. */
const referencesIn = (component: FlowComponent): ReadonlySet<string> =>
  new Set([
    ...templatesOf(component).flatMap(({ text }) =>
      templateOf(text).flatMap((part) =>
        typeof part === 'object' && part.of === 'component' ? part.id : [],
      ),
    ),
    ...Object.values(innerOf(component) ?? {}).flatMap((inner) => [...referencesIn(inner)]),
  ]);

const workOf = (id: string, component: FlowComponent, options: CompileOptions): Work => {
  const { resources } = options;
  switch (component.component_name) {
    case 'begin':
      return ({ sys }) => of(done({ text: sys.query }));
    case 'agent': {
      const { params } = component;
      return agentWork(id, params, modelOf(params, options), options);
    }
    case 'categorize': {
      const { params } = component;
      return categorizeWork(id, params, modelOf(params, options));
    }
    case 'retrieval': {
      const { params } = component;
      return retrievalWork(id, params, existing(ownOf(resources.retrievers, params.retriever_id)));
    }
    case 'code': {
      const { params } = component;
      return codeWork(id, params, existing(ownOf(resources.code, params.function)));
    }
    case 'tool': {
      const { params } = component;
      const tool = resources.tools?.find(({ name }) => name === params.tool);
      return toolWork(id, params, existing(tool));
    }
    case 'switch':
      return switchWork(component.params);
    case 'message':
      return messageWork(component.params);
    case 'iterate': {
      const { params } = component;
      return iterateWork(id, params, compileGraph(params.components, options, true));
    }
    case 'loop': {
      const { params } = component;
      return loopWork(id, params, compileGraph(params.components, options, true));
    }
    case 'human':
      return humanWork(id, component.params, resources.human);
    case 'http':
      return httpWork(id, component.params, existing(resources.http), resources.secrets);
    case 'set':
      return setWork(component.params, options.variables);
  }
};

const modelOf = (
  { llm_id, retry }: Pick<AgentParams, 'llm_id' | 'retry'>,
  { resources }: CompileOptions,
): Model => modelWithRetry(existing(ownOf(resources.models, llm_id)), retry);

const messageWork = ({ content }: MessageParams): Work => {
  const template = templateOf(content);
  return (scope) => defer(() => of(done(outputOf(template, scope))));
};

/** A checked document only refers to resources that exist. */
const existing = <T>(resource: T | undefined): T => {
  if (resource !== undefined) return resource;
  throw new MillraceError('invalidState', 'The flow was compiled without being checked.');
};

/** Adds the ID of the component to its error, or handles the error as `on_error` defines. */
const withErrorHandling = (id: string, component: FlowComponent, work: Work): Work => {
  const onError = onErrorOf(component);
  const fallback = templateOf(onError?.value ?? '');
  return (scope) =>
    defer(() => work(scope)).pipe(
      catchError((error: unknown) => {
        if (onError === undefined) throw flowErrorOf(id, error);
        const { code, userMessage: message, status } = toError(error);
        const failed = { text: '', error: { code, message, status } };
        const outputs = new Map([...scope.outputs, [id, failed]]);
        return of({
          ...done({ ...failed, text: render(fallback, { ...scope, outputs }) }),
          ...(onError.to !== undefined && { to: onError.to }),
        });
      }),
    );
};
