import type { FlowDocument } from './document.js';
import { componentProblems } from './component-problems.js';
import { graphProblems } from './graph-problems.js';
import { limits } from './limits.js';
import { plainCopy } from './plain-copy.js';
import { type Finding, flowError, type FlowProblem, problemAt, told } from './problem.js';
import { readAround } from './read-around.js';
import { resourceProblems } from './resource-problems.js';
import type { FlowResources } from './resources.js';
import { readDocument } from './schema-problems.js';
import { allComponents, templateProblems } from './template-problems.js';
import { toolInputProblems } from './tool-input-problems.js';

/**
 * Everything that is wrong with a document; an empty list where it can run. Without resources, the ids of models, tools, retrievers, functions
 * and servers are not looked up, nor the parameters of tools. It never throws.
 */
export const problemsIn = (document: unknown, resources?: FlowResources): readonly FlowProblem[] =>
  read(document, resources).problems;

/** The document, as a copy that nobody else can change; throws one `config` error that tells all that is wrong. */
export const checkedDocument = (document: unknown, resources?: FlowResources): FlowDocument => {
  const { problems, document: checked } = read(document, resources);
  if (checked === undefined || problems.length > 0) throw flowError(problems);
  return checked;
};

const read = (
  given: unknown,
  resources: FlowResources | undefined,
): { readonly problems: readonly FlowProblem[]; readonly document?: FlowDocument } => {
  const copy = plainCopy(given);
  if (copy.problem !== undefined) return { problems: told([copy.problem]) };
  const { document, faults } = readDocument(copy.value);
  if (document !== undefined) return { document, problems: told(problemsOf(document, resources)) };
  const around = readAround(copy.value, faults);
  const more = around === undefined ? [] : problemsOf(around.document, resources, around.isPartial);
  return { problems: told([...faults, ...more]) };
};

const problemsOf = (
  { components }: FlowDocument,
  resources: FlowResources | undefined,
  isPartial = false,
): readonly Finding[] => {
  const count = allComponents(components).length;
  if (count > limits.components) {
    return [problemAt(['components'], `are ${count}: more than ${limits.components}`)];
  }
  return [
    ...graphProblems(components, isPartial),
    ...templateProblems(components, isPartial),
    ...componentProblems(components, resources),
    ...(resources === undefined
      ? []
      : [
          ...resourceProblems(components, resources),
          ...toolInputProblems(components, resources.tools ?? []),
        ]),
  ];
};
