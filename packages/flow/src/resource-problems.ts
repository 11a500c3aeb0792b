import { didYouMean } from './did-you-mean.js';
import type { FlowComponent, FlowComponents } from './document.js';
import { type Finding, problemAt } from './problem.js';
import { unreadableFunction } from './read-partially.js';
import type { FlowResources } from './resources.js';
import { templateOf } from './render.js';
import { templatesOf } from './templates-of.js';
import { allComponents } from './template-problems.js';

type Path = readonly (string | number)[];

export const resourceProblems = (
  components: FlowComponents,
  resources: FlowResources,
): readonly Finding[] =>
  allComponents(components).flatMap(({ component, path }) => [
    ...(component.component_name === 'http' && resources.http === undefined
      ? [problemAt(path, 'sends HTTP requests, but the program has not allowed it', noHttp)]
      : []),
    ...resourceReferences(component, resources).flatMap(({ path: at, id, known, what }) =>
      known.includes(id) || id === unreadableFunction
        ? []
        : [
            problemAt(
              [...path, 'params', ...at],
              `names '${id}', which is not one of the ${what} of this program`,
              () => didYouMean(id, known, what),
            ),
          ],
    ),
  ]);

const noHttp = 'Pass http: { fetch }, with guardedFetch() of @millrace/tools/web.';

interface ResourceReference {
  readonly path: Path;
  readonly id: string;
  readonly known: readonly string[];
  readonly what: string;
}

const resourceReferences = (
  component: FlowComponent,
  resources: FlowResources,
): readonly ResourceReference[] => {
  const { models = {}, tools = [], retrievers = {}, code = {}, mcp = {} } = resources;
  const toolNames = tools.map(({ name }) => name);
  const tool = (id: string, ...path: Path): ResourceReference => ({
    path,
    id,
    known: toolNames,
    what: 'tools',
  });
  const model = (id: string): ResourceReference => ({
    path: ['llm_id'],
    id,
    known: Object.keys(models),
    what: 'models',
  });
  switch (component.component_name) {
    case 'agent': {
      const { llm_id, tools: own = [], mcp: servers = [] } = component.params;
      return [
        model(llm_id),
        ...own.map((name, index) => tool(name, 'tools', index)),
        ...servers.map((id, index) => ({
          path: ['mcp', index],
          id,
          known: Object.keys(mcp),
          what: 'MCP servers',
        })),
      ];
    }
    case 'categorize':
      return [model(component.params.llm_id)];
    case 'retrieval': {
      const known = Object.keys(retrievers);
      const { retriever_id: id } = component.params;
      return [{ path: ['retriever_id'], id, known, what: 'retrievers' }];
    }
    case 'code': {
      const known = Object.keys(code);
      return [{ path: ['function'], id: component.params.function, known, what: 'functions' }];
    }
    case 'tool':
      return [tool(component.params.tool, 'tool')];
    case 'http': {
      const known = Object.keys(resources.secrets ?? {});
      return templatesOf(component).flatMap(({ path, text }) =>
        templateOf(text).flatMap((part) =>
          typeof part === 'object' && part.of === 'secret'
            ? [{ path, id: part.name, known, what: 'secrets' }]
            : [],
        ),
      );
    }
    default:
      return [];
  }
};
