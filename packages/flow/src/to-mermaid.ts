import type { FlowComponent, FlowComponents } from './document.js';
import { type Graph, graphOf } from './graph.js';
import { choicesOf, innerOf, onErrorOf } from './kinds.js';
import { checkedDocument } from './problems-in.js';
import { allComponents } from './template-problems.js';

/**
 * Draws a flow as a Mermaid flowchart: components with their ids and what they are, ways with what they depend on, iterations as frames. The same
 * document gives the same text. Throws a `config` error where the document cannot run, as far as that shows without models and tools.
 */
export const toMermaid = (document: unknown): string => {
  const { components } = checkedDocument(document);
  const names = new Map(allComponents(components).map(({ id }, index) => [id, `n${index}`]));
  return ['flowchart TD', ...drawn(components, names, '  '), ''].join('\n');
};

const drawn = (
  components: FlowComponents,
  names: ReadonlyMap<string, string>,
  indent: string,
): readonly string[] => {
  const graph = graphOf(components);
  const nameOf = (id: string): string => names.get(id) ?? '';
  return [
    ...[...graph.components].flatMap(([id, component]) => {
      const inner = innerOf(component);
      if (inner === undefined) return [`${indent}${nameOf(id)}${shaped(id, component)}`];
      const label = escaped(
        `${id}: for each of ${component.component_name === 'iterate' ? component.params.items : ''}`,
      );
      return [
        `${indent}subgraph ${nameOf(id)}["${label}"]`,
        ...drawn(inner, names, `${indent}  `),
        `${indent}end`,
      ];
    }),
    ...[...graph.components].flatMap(([id, component]) =>
      waysOf(graph, id, component).map(
        ({ label, to, isError }) =>
          `${indent}${nameOf(id)} ${isError ? '-.->' : '-->'}${label === '' ? '' : `|"${escaped(label)}"|`} ${nameOf(to)}`,
      ),
    ),
  ];
};

interface DrawnWay {
  readonly label: string;
  readonly to: string;
  readonly isError: boolean;
}

const waysOf = ({ always }: Graph, id: string, component: FlowComponent): readonly DrawnWay[] => [
  ...[...(always.get(id) ?? [])].map((to) => ({ label: '', to, isError: false })),
  ...(choicesOf(component) ?? []).flatMap(({ label, to: all }) =>
    all.map((to) => ({ label, to, isError: false })),
  ),
  ...(onErrorOf(component)?.to ?? []).map((to) => ({ label: 'on error', to, isError: true })),
];

/** A component in the shape of its kind. */
const shaped = (id: string, component: FlowComponent): string => {
  const label = (what: string): string => `"${escaped(id)}<br/>${escaped(what)}"`;
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

/** Characters of a label, longer ones are cut. */
const mostCharacters = 60;

/** A text that is nothing but text in a label: neither Markdown, HTML, an entity nor the end of the label. */
const escaped = (text: string): string => {
  const line = text.replace(/[\s\p{C}]+/gu, ' ').trim();
  const cut = Array.from(line).slice(0, mostCharacters).join('');
  return (cut === line ? line : `${cut}…`).replace(
    /[^\p{L}\p{N}\p{Extended_Pictographic} .,:;!?=@()/+…_-]/gu,
    (character) => `#${character.codePointAt(0) ?? 0};`,
  );
};
