import type { FlowComponent, FlowComponents } from './document.js';
import { didYouMean } from './near.js';
import { type Finding, problemAt } from './problem.js';
import { unreadableFunction } from './read-around.js';
import type { FlowResources } from './resources.js';
import { allComponents } from './template-problems.js';

type Path = readonly (string | number)[];

/** What components name and the program does not give. */
export const resourceProblems = (
  components: FlowComponents,
  resources: FlowResources,
): readonly Finding[] =>
  allComponents(components).flatMap(({ component, path }) =>
    named(component, resources).flatMap(({ path: at, id, known, what }) =>
      known.includes(id) || id === unreadableFunction
        ? []
        : [
            problemAt(
              [...path, 'params', ...at],
              `names '${id}', which is not among the ${what} that the program gives`,
              () => didYouMean(id, known, what),
            ),
          ],
    ),
  );

interface Named {
  readonly path: Path;
  readonly id: string;
  readonly known: readonly string[];
  readonly what: string;
}

const named = (component: FlowComponent, resources: FlowResources): readonly Named[] => {
  const { models = {}, tools = [], retrievers = {}, code = {}, mcp = {} } = resources;
  const toolNames = tools.map(({ name }) => name);
  const toolNamed = (id: string, ...path: Path): Named => ({
    path,
    id,
    known: toolNames,
    what: 'tools',
  });
  const model = (id: string): Named => ({
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
        ...own.map((name, index) => toolNamed(name, 'tools', index)),
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
      return [toolNamed(component.params.tool, 'tool')];
    default:
      return [];
  }
};
