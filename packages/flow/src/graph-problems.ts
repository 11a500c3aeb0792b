import type { FlowComponent, FlowComponents } from './document.js';
import { cyclesIn, type Graph, graphOf, reachable } from './graph.js';
import { choicesOf, innerOf, onErrorOf } from './kinds.js';
import { limits } from './limits.js';
import { didYouMean } from './near.js';
import { type Finding, problemAt } from './problem.js';
import { allComponents } from './template-problems.js';

type Path = readonly (string | number)[];

/** What is wrong with how components are joined, here and within iterations. Where not all is known, nothing is said to be missing. */
export const graphProblems = (
  components: FlowComponents,
  isPartial: boolean,
  homes = homesOf(components),
  path: Path = ['components'],
  level = 0,
): readonly Finding[] => {
  const graph = graphOf(components);
  const each = [...graph.components];
  const unknown = each.flatMap(([id, component]) =>
    unknownIds(graph, component, [...path, id], homes),
  );
  return [
    ...unknown,
    ...each.flatMap(([id, component]) => disagreements(graph, id, component, [...path, id])),
    ...cyclesIn(graph).map((cycle) =>
      problemAt(path, `go in a circle: ${cycle.join(' → ')}`, 'Take one of these ways out.'),
    ),
    ...secondBegins(graph, path),
    ...(isPartial ? [] : lacks(graph, path, unknown.length === 0)),
    ...each.flatMap(([id, component]) => {
      const inner = innerOf(component);
      if (inner === undefined) return [];
      const place = [...path, id, 'params', 'components'];
      return level < limits.nesting
        ? graphProblems(inner, isPartial, homes, place, level + 1)
        : [problemAt(place, `are nested more than ${limits.nesting} deep`)];
    }),
  ];
};

/** Every list of ids that a component gives, and where. */
const listsOf = (
  component: FlowComponent,
): readonly { readonly ids: readonly string[]; readonly path: Path }[] => [
  { ids: component.upstream ?? [], path: ['upstream'] },
  { ids: component.downstream ?? [], path: ['downstream'] },
  ...(choicesOf(component) ?? []).map(({ to, path }) => ({ ids: to, path: ['params', ...path] })),
  { ids: onErrorOf(component)?.to ?? [], path: ['params', 'on_error', 'to'] },
];

/** The iterations that components are inside of, by their ids. */
type Homes = ReadonlyMap<string, string | undefined>;

const homesOf = (components: FlowComponents): Homes =>
  new Map(allComponents(components).map(({ id, path }) => [id, path.at(-4)?.toString()]));

const unknownIds = (
  { components }: Graph,
  component: FlowComponent,
  path: Path,
  homes: Homes,
): readonly Finding[] =>
  listsOf(component).flatMap((list) =>
    list.ids.flatMap((id, index) =>
      components.has(id)
        ? []
        : [
            homes.has(id)
              ? problemAt(
                  [...path, ...list.path, index],
                  `names '${id}', which is ${whereIs(homes.get(id))}`,
                  'A way stays among the components of one iteration.',
                )
              : problemAt(
                  [...path, ...list.path, index],
                  `names '${id}', which is no component here`,
                  () => didYouMean(id, [...components.keys()], 'components'),
                ),
          ],
    ),
  );

const whereIs = (home: string | undefined): string =>
  home === undefined ? 'outside of this iteration' : `inside '${home}'`;

/** Where two ends of a way do not say the same. */
const disagreements = (
  { components, downstream, upstream }: Graph,
  id: string,
  component: FlowComponent,
  path: Path,
): readonly Finding[] => {
  const choices = choicesOf(component)?.flatMap(({ to }) => to);
  const inError = onErrorOf(component)?.to ?? [];
  const { downstream: own, upstream: named } = component;
  const ends = [...(downstream.get(id) ?? [])];
  const saysNot = ends.filter(
    (to) => own !== undefined && !own.includes(to) && !inError.includes(to),
  );
  const leadsNot = (choices === undefined ? [] : ends).filter(
    (to) => choices?.includes(to) !== true && !inError.includes(to),
  );
  const namesNot = [...(upstream.get(id) ?? [])].filter((from) => named?.includes(from) === false);
  return [
    ...saysNot.map((to) =>
      problemAt(
        [...path, 'downstream'],
        `does not name '${to}', though this leads there`,
        'Name it, or leave the whole list out.',
      ),
    ),
    ...leadsNot.map((to) =>
      problemAt(
        components.get(id)?.downstream?.includes(to) === true
          ? [...path, 'downstream']
          : [...path.slice(0, -1), to, 'upstream'],
        `joins '${id}' with '${to}', but no choice of '${id}' leads there`,
        `Name it in a 'to' of '${id}', or leave it out here.`,
      ),
    ),
    ...namesNot.map((from) =>
      problemAt(
        [...path, 'upstream'],
        `does not name '${from}', though that leads here`,
        'Name it, or leave the whole list out.',
      ),
    ),
  ];
};

const named = ({ components }: Graph, name: FlowComponent['component_name']): readonly string[] =>
  [...components].flatMap(([id, { component_name: own }]) => (own === name ? [id] : []));

const secondBegins = (graph: Graph, path: Path): readonly Finding[] => {
  const [begin, ...others] = named(graph, 'begin');
  if (begin === undefined) return [];
  return [
    ...others.map((id) =>
      problemAt([...path, id], `is a second begin beside '${begin}'`, 'There must be one only.'),
    ),
    ...(graph.upstream.get(begin)?.size === 0
      ? []
      : [problemAt([...path, begin], 'is the begin, but something leads to it')]),
  ];
};

/** What is not there, or cannot be come by, where all ways are known. */
const lacks = (graph: Graph, path: Path, knowsWays: boolean): readonly Finding[] => {
  const [begin, ...others] = named(graph, 'begin');
  const say = 'Add a message component: what it says is what comes of them.';
  const silent = named(graph, 'message').length === 0 ? [problemAt(path, 'say nothing', say)] : [];
  if (begin === undefined) {
    const suggestion = 'Add a component whose component_name is begin, upstream of the first.';
    return [problemAt(path, 'have no begin', suggestion), ...silent];
  }
  if (!knowsWays) return silent;
  const found = reachable([begin], (id) => graph.downstream.get(id) ?? []);
  const lost = [...graph.components.keys()].filter((id) => !found.has(id) && !others.includes(id));
  return [
    ...lost.map((id) =>
      problemAt([...path, id], 'is never reached', `Nothing leads to it from '${begin}'.`),
    ),
    ...silent,
  ];
};
