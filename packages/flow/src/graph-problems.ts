import { branchesOf, innerOf, onErrorOf } from './branches.js';
import { didYouMean } from './did-you-mean.js';
import type { FlowComponent, FlowComponents } from './document.js';
import { cyclesIn, type Graph, graphOf, reachable } from './graph.js';
import { limits } from './limits.js';
import { type Finding, problemAt } from './problem.js';
import { allComponents } from './template-problems.js';

type Path = readonly (string | number)[];

/** Problems in the links, including those inside iterations. In a partial document, parts may be missing. */
export const graphProblems = (
  components: FlowComponents,
  isPartial: boolean,
  parents = parentsOf(components),
  path: Path = ['components'],
  level = 0,
): readonly Finding[] => {
  const graph = graphOf(components);
  const each = [...graph.components];
  const unknown = each.flatMap(([id, component]) =>
    unknownIds(graph, component, [...path, id], parents),
  );
  return [
    ...unknown,
    ...each.flatMap(([id, component]) => inconsistentLinks(graph, id, component, [...path, id])),
    ...cyclesIn(graph).map((cycle) =>
      problemAt(path, `form a cycle: ${cycle.join(' → ')}`, 'Remove one of these links.'),
    ),
    ...beginProblems(graph, path),
    ...(isPartial ? [] : missingParts(graph, path, unknown.length === 0)),
    ...each.flatMap(([id, component]) => {
      const inner = innerOf(component);
      if (inner === undefined) return [];
      const place = [...path, id, 'params', 'components'];
      return level < limits.nesting
        ? graphProblems(inner, isPartial, parents, place, level + 1)
        : [problemAt(place, `are nested more than ${limits.nesting} deep`)];
    }),
  ];
};

const listsOf = (
  component: FlowComponent,
): readonly { readonly ids: readonly string[]; readonly path: Path }[] => [
  { ids: component.upstream ?? [], path: ['upstream'] },
  { ids: component.downstream ?? [], path: ['downstream'] },
  ...(branchesOf(component) ?? []).map(({ to, path }) => ({ ids: to, path: ['params', ...path] })),
  { ids: onErrorOf(component)?.to ?? [], path: ['params', 'on_error', 'to'] },
];

type Parents = ReadonlyMap<string, string | undefined>;

const parentsOf = (components: FlowComponents): Parents =>
  new Map(allComponents(components).map(({ id, path }) => [id, path.at(-4)?.toString()]));

const unknownIds = (
  { components }: Graph,
  component: FlowComponent,
  path: Path,
  parents: Parents,
): readonly Finding[] =>
  listsOf(component).flatMap((list) =>
    list.ids.flatMap((id, index) =>
      components.has(id)
        ? []
        : [
            parents.has(id)
              ? problemAt(
                  [...path, ...list.path, index],
                  `names '${id}', which is ${locationOf(parents.get(id))}`,
                  'Links cannot cross the border of an iteration.',
                )
              : problemAt(
                  [...path, ...list.path, index],
                  `names '${id}', which is not a component here`,
                  () => didYouMean(id, [...components.keys()], 'components'),
                ),
          ],
    ),
  );

const locationOf = (parent: string | undefined): string =>
  parent === undefined ? 'outside of this iteration' : `inside '${parent}'`;

/** Links that both ends define, but differently. */
const inconsistentLinks = (
  { components, downstream, upstream }: Graph,
  id: string,
  component: FlowComponent,
  path: Path,
): readonly Finding[] => {
  const choices = branchesOf(component)?.flatMap(({ to }) => to);
  const inError = onErrorOf(component)?.to ?? [];
  const { downstream: own, upstream: named } = component;
  const ends = [...(downstream.get(id) ?? [])];
  const noDownstream = ends.filter(
    (to) => own !== undefined && !own.includes(to) && !inError.includes(to),
  );
  const noChoice = (choices === undefined ? [] : ends).filter(
    (to) => choices?.includes(to) !== true && !inError.includes(to),
  );
  const noUpstream = [...(upstream.get(id) ?? [])].filter(
    (from) => named?.includes(from) === false,
  );
  return [
    ...noDownstream.map((to) =>
      problemAt(
        [...path, 'downstream'],
        `does not name '${to}', although this component leads there`,
        'Add it, or remove the whole list.',
      ),
    ),
    ...noChoice.map((to) =>
      problemAt(
        components.get(id)?.downstream?.includes(to) === true
          ? [...path, 'downstream']
          : [...path.slice(0, -1), to, 'upstream'],
        `links '${id}' to '${to}', but no choice of '${id}' leads there`,
        `Add it to a 'to' of '${id}', or remove it here.`,
      ),
    ),
    ...noUpstream.map((from) =>
      problemAt(
        [...path, 'upstream'],
        `does not name '${from}', although that component leads here`,
        'Add it, or remove the whole list.',
      ),
    ),
  ];
};

const ofKind = ({ components }: Graph, name: FlowComponent['component_name']): readonly string[] =>
  [...components].flatMap(([id, { component_name: own }]) => (own === name ? [id] : []));

const beginProblems = (graph: Graph, path: Path): readonly Finding[] => {
  const [begin, ...others] = ofKind(graph, 'begin');
  if (begin === undefined) return [];
  return [
    ...others.map((id) =>
      problemAt([...path, id], `is a second begin component after '${begin}'`, 'Keep only one.'),
    ),
    ...(graph.upstream.get(begin)?.size === 0
      ? []
      : [problemAt([...path, begin], 'is the begin component, but another component leads to it')]),
  ];
};

/** Missing kinds of components and, if all links are valid, components that are never reached. */
const missingParts = (graph: Graph, path: Path, allKnown: boolean): readonly Finding[] => {
  const [begin, ...others] = ofKind(graph, 'begin');
  const addMessage = 'Add a message component: its content is the answer.';
  const hasMessage = ofKind(graph, 'message').length > 0;
  const noMessage = hasMessage ? [] : [problemAt(path, 'have no message component', addMessage)];
  if (begin === undefined) {
    const suggestion = "Add a component with the component_name 'begin' before the first one.";
    return [problemAt(path, 'have no begin component', suggestion), ...noMessage];
  }
  if (!allKnown) return noMessage;
  const found = reachable([begin], (id) => graph.downstream.get(id) ?? []);
  const lost = [...graph.components.keys()].filter((id) => !found.has(id) && !others.includes(id));
  return [
    ...lost.map((id) =>
      problemAt([...path, id], 'is never reached', `Nothing leads to it from '${begin}'.`),
    ),
    ...noMessage,
  ];
};
