import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { componentProblems } from './component-problems.js';
import type { FlowDocument } from './document.js';
import { graphProblems } from './graph-problems.js';
import { limits } from './limits.js';
import { plainCopy } from './plain-copy.js';
import { type Finding, flowError, type FlowProblem, problemAt, toFlowProblems } from './problem.js';
import { readPartially } from './read-partially.js';
import { resourceProblems } from './resource-problems.js';
import type { FlowResources } from './resources.js';
import { readDocument } from './schema-problems.js';
import { allComponents, templateProblems } from './template-problems.js';
import { variableProblems } from './variable-problems.js';
import { toolInputProblems } from './tool-input-problems.js';

/**
 * Returns all problems in a document; an empty list if it can run. Without resources, it does not check the IDs of
 * models, tools, retrievers, functions and servers, nor the input of tools. It never throws.
 */
export const problemsIn = (document: unknown, resources?: FlowResources): readonly FlowProblem[] =>
  read(document, resources).problems;

/** Returns a frozen copy of a valid document. Throws one `config` error with all problems. */
export const checkedDocument = (document: unknown, resources?: FlowResources): FlowDocument => {
  const { problems, document: checked } = read(document, resources);
  if (checked === undefined && isCanvas(plainCopy(document).value)) throw canvasError();
  if (checked === undefined || problems.length > 0) throw flowError(problems);
  return checked;
};

/** Whether a value has the form of a canvas of RAGFlow: its components are an object, and each has an `obj`. Also within a template, as `dsl`. */
const isCanvas = (document: unknown): boolean => {
  if (!isRecord(document)) return false;
  const { components, dsl } = document;
  if (isRecord(dsl) && isRecord(dsl['components'])) return true;
  const all = isRecord(components) ? Object.values(components) : [];
  return all.length > 0 && all.every((it) => isRecord(it) && isRecord(it['obj']));
};

const canvasError = (): MillraceError =>
  new MillraceError(
    'config',
    "The document is a canvas of RAGFlow. Convert it first: flowAgent(fromRagflow(canvas).document, …), with fromRagflow of '@millrace/flow/ragflow'.",
  );

const read = (
  given: unknown,
  resources: FlowResources | undefined,
): { readonly problems: readonly FlowProblem[]; readonly document?: FlowDocument } => {
  const copy = plainCopy(given);
  if (copy.problem !== undefined) return { problems: toFlowProblems([copy.problem]) };
  const { document, faults } = readDocument(copy.value);
  if (document !== undefined)
    return { document, problems: toFlowProblems(problemsOf(document, resources)) };
  const around = readPartially(copy.value, faults);
  const more = around === undefined ? [] : problemsOf(around.document, resources, around.isPartial);
  return { problems: toFlowProblems([...faults, ...more]) };
};

const problemsOf = (
  { components, variables = {} }: FlowDocument,
  resources: FlowResources | undefined,
  isPartial = false,
): readonly Finding[] => {
  const count = allComponents(components).length;
  if (count > limits.components) {
    return [problemAt(['components'], `are ${count}: more than ${limits.components}`)];
  }
  return [
    ...graphProblems(components, isPartial),
    ...variableProblems(components, variables),
    ...templateProblems(components, Object.keys(variables), isPartial),
    ...componentProblems(components, resources),
    ...(resources === undefined
      ? []
      : [
          ...resourceProblems(components, resources),
          ...toolInputProblems(components, resources.tools ?? []),
        ]),
  ];
};
