import { branchesOf, innerOf, onErrorOf } from './branches.js';
import type { FlowComponent, FlowComponents } from './document.js';
import { type Graph, graphOf } from './graph.js';
import { checkedDocument } from './problems-in.js';
import { allComponents } from './template-problems.js';

/**
 * Renders a flow as a deterministic Mermaid flowchart: components with ID and kind, links with their conditions, and
 * iterations as subgraphs. Throws a `config` error for an invalid document; resources are not checked.
 */
export const toMermaid = (document: unknown): string => {
  const { components } = checkedDocument(document);
  const names = new Map(allComponents(components).map(({ id }, index) => [id, `n${index}`]));
  return ['flowchart TD', ...draw(components, names, '  '), ''].join('\n');
};

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
      const label = escapeLabel(
        `${id}: for each of ${component.component_name === 'iterate' ? component.params.items : ''}`,
      );
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
    case 'iterate':
      return `[${label('iterate')}]`;
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
