import { branchesOf, conditionText, innerOf, onErrorOf } from './branches.js';
import type { FlowComponent, FlowComponents } from './document.js';
import type { FlowState } from './flow-state.js';
import { type Graph, graphOf } from './graph.js';
import { checkedDocument } from './problems-in.js';
import type { ComponentStatus } from './scope.js';
import { allComponents } from './template-problems.js';

/**
 * Renders a flow as a deterministic Mermaid flowchart: components with ID and kind, links with their conditions, and
 * iterations and loops as subgraphs. With the state of a call, components have the colour of their status. Throws a
 * `config` error for an invalid document; resources are not checked.
 */
export const toMermaid = (document: unknown, state?: Pick<FlowState, 'components'>): string =>
  createPicture(document)(state);

/** Checks and draws a document once, for pictures of many states. */
export const createPicture = (
  document: unknown,
): ((state?: Pick<FlowState, 'components'>) => string) => {
  const { components } = checkedDocument(document);
  const names = new Map(allComponents(components).map(({ id }, index) => [id, `n${index}`]));
  const lines = ['flowchart TD', ...draw(components, names, '  ')];
  return (state) =>
    [...lines, ...(state === undefined ? [] : colours(state, names)), ''].join('\n');
};

/** Fill and border of each status; a pending component has the colours of the theme. */
const styles: Readonly<Record<Exclude<ComponentStatus, 'pending'>, string>> = {
  running: 'fill:#fff3bf,stroke:#f08c00,color:#000',
  done: 'fill:#d3f9d8,stroke:#2b8a3e,color:#000',
  failed: 'fill:#ffe3e3,stroke:#c92a2a,color:#000',
  skipped: 'fill:#f1f3f5,stroke:#adb5bd,color:#868e96,stroke-dasharray:4',
  suspended: 'fill:#d0ebff,stroke:#1971c2,color:#000',
  interrupted: 'fill:#f1f3f5,stroke:#c92a2a,color:#868e96',
};

const colours = (
  { components }: Pick<FlowState, 'components'>,
  names: ReadonlyMap<string, string>,
): readonly string[] =>
  Object.entries(styles).flatMap(([status, style]) => {
    const nodes = [...names].flatMap(([id, node]) =>
      Object.hasOwn(components, id) && components[id] === status ? [node] : [],
    );
    return nodes.length === 0
      ? []
      : [`  classDef ${status} ${style}`, `  class ${nodes.join(',')} ${status}`];
  });

const draw = (
  components: FlowComponents,
  names: ReadonlyMap<string, string>,
  indent: string,
): readonly string[] => {
  const graph = graphOf(components);
  const nameOf = (id: string): string => names.get(id) ?? '';
  return [
    ...[...graph.components].flatMap(([id, component]) => {
      const inner = innerOf(component);
      if (inner === undefined) return [`${indent}${nameOf(id)}${shape(id, component)}`];
      const label = escapeLabel(`${id}: ${repeats(component)}`);
      return [
        `${indent}subgraph ${nameOf(id)}["${label}"]`,
        ...draw(inner, names, `${indent}  `),
        `${indent}end`,
      ];
    }),
    ...[...graph.components].flatMap(([id, component]) =>
      linksOf(graph, id, component).map(
        ({ label, to, isError }) =>
          `${indent}${nameOf(id)} ${isError ? '-.->' : '-->'}${label === '' ? '' : `|"${escapeLabel(label)}"|`} ${nameOf(to)}`,
      ),
    ),
  ];
};

const repeats = (component: FlowComponent): string => {
  if (component.component_name === 'iterate') return `for each of ${component.params.items}`;
  if (component.component_name !== 'loop') return '';
  const { max_rounds, until } = component.params;
  const times = `up to ${max_rounds} times`;
  return until === undefined ? times : `${times}, until ${conditionText(until)}`;
};

interface Link {
  readonly label: string;
  readonly to: string;
  readonly isError: boolean;
}

const linksOf = ({ always }: Graph, id: string, component: FlowComponent): readonly Link[] => [
  ...[...(always.get(id) ?? [])].map((to) => ({ label: '', to, isError: false })),
  ...(branchesOf(component) ?? []).flatMap(({ label, to: all }) =>
    all.map((to) => ({ label, to, isError: false })),
  ),
  ...(onErrorOf(component)?.to ?? []).map((to) => ({ label: 'on error', to, isError: true })),
];

const shape = (id: string, component: FlowComponent): string => {
  const label = (what: string): string => `"${escapeLabel(id)}<br/>${escapeLabel(what)}"`;
  switch (component.component_name) {
    case 'begin':
      return `([${label('begin')}])`;
    case 'agent':
      return `[${label(`agent, ${component.params.llm_id}`)}]`;
    case 'retrieval':
      return `[(${label(`retrieval, ${component.params.retriever_id}`)})]`;
    case 'switch':
      return `{${label('switch')}}`;
    case 'categorize':
      return `{{${label(`categorize, ${component.params.llm_id}`)}}}`;
    case 'message':
      return `[/${label('message')}/]`;
    case 'code':
      return `[[${label(`code, ${component.params.function}`)}]]`;
    case 'tool':
      return `[[${label(`tool, ${component.params.tool}`)}]]`;
    case 'human':
      return `[\\${label('human')}/]`;
    case 'http': {
      const { method = 'GET', url } = component.params;
      return `[[${label(`http, ${method} ${url.split('?')[0] ?? ''}`)}]]`;
    }
    case 'set':
      return `[${label(`set ${component.params.assign.map(({ variable }) => variable).join(', ')}`)}]`;
    case 'iterate':
    case 'loop':
      return `[${label(component.component_name)}]`;
  }
};

const maxLabelLength = 60;

/** Escapes text for a label, so that it contains no Markdown, HTML, entities or quotes. */
const escapeLabel = (text: string): string => {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim();
  const cut = Array.from(line).slice(0, maxLabelLength).join('');
  return (cut === line ? line : `${cut}…`).replace(
    /[^\p{L}\p{N}\p{Extended_Pictographic} .,:;!?=@()/+…_-]/gu,
    (character) => `#${character.codePointAt(0) ?? 0};`,
  );
};
