import ts from 'typescript';

/**
 * Marks what a module computes when it is loaded as free of side effects, as every package declares with
 * `"sideEffects": false`. By that, bundlers drop modules that nothing uses; what nothing uses within a module, they
 * drop only by such marks.
 */
export function markPure(path, text) {
  const module = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
  const values = module.statements
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations)
    .flatMap(({ initializer }) => initializer ?? []);
  const edits = values
    .filter((value) => !hasAwait(value))
    .flatMap((value) => editsOf(value, module));
  let marked = '';
  let end = 0;
  for (const { at, insert } of edits) {
    marked += text.slice(end, at) + insert;
    end = at;
  }
  return marked + text.slice(end);
}

const mark = '/* @__PURE__ */ ';

/** Marks calls if that is enough, and otherwise makes the whole value the result of a marked call. */
const editsOf = (value, module) =>
  callsIn(value)?.map((call) => ({ at: call.getStart(module), insert: mark })) ?? [
    { at: value.getStart(module), insert: `${mark}(() => (` },
    { at: value.end, insert: '))()' },
  ];

/** The calls that are made when an expression is evaluated; undefined if something else in it may have an effect. */
function callsIn(node) {
  if (plain.some((is) => is(node))) return [];
  if (wrappers.some((is) => is(node))) return callsIn(node.expression);
  if (ts.isArrayLiteralExpression(node)) return callsInAll(node.elements);
  if (ts.isObjectLiteralExpression(node)) return callsInAll(node.properties.map(valueOf));
  if (!isMarkable(node)) return undefined;
  const inArguments = callsInAll(node.arguments ?? []);
  return inArguments && [node, ...inArguments];
}

function callsInAll(nodes) {
  const calls = nodes.map((node) => node && callsIn(node));
  return calls.includes(undefined) ? undefined : calls.flat();
}

/** Whether it is a call, and a mark covers the name of what it calls. */
const isMarkable = (node) =>
  (ts.isCallExpression(node) || ts.isNewExpression(node)) &&
  (ts.isIdentifier(node.expression) ||
    (ts.isPropertyAccessExpression(node.expression) &&
      ts.isIdentifier(node.expression.expression)));

/** What evaluating a property evaluates: a method only makes a function. */
const valueOf = (property) => {
  if (property.name === undefined || ts.isComputedPropertyName(property.name)) return undefined;
  return property.initializer ?? property.name;
};

const wrappers = [ts.isAsExpression, ts.isSatisfiesExpression, ts.isParenthesizedExpression];

const plain = [
  ts.isArrowFunction,
  ts.isFunctionExpression,
  ts.isIdentifier,
  ts.isLiteralExpression,
  ({ kind }) => constants.has(kind),
];
const constants = new Set([
  ts.SyntaxKind.TrueKeyword,
  ts.SyntaxKind.FalseKeyword,
  ts.SyntaxKind.NullKeyword,
]);

const hasAwait = (node) =>
  ts.isAwaitExpression(node) ||
  (!ts.isFunctionLike(node) && ts.forEachChild(node, hasAwait) === true);
