// A module hook: every function of the packages reports that it was entered.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const product = /\/packages\/([a-z0-9-]+)\/dist\/(.*)\.js$/;

export async function load(url, context, next) {
  const found = product.exec(url);
  if (found === null || found[2].includes('.test-support')) return next(url, context);
  const [, name, path] = found;
  const source = reporting(await readFile(fileURLToPath(url), 'utf8'), `${name}/${path}.ts`);
  return { format: 'module', source, shortCircuit: true };
}

function reporting(text, file) {
  const edits = [];
  const visit = (node) => {
    const { body } = node;
    if (ts.isFunctionLike(node) && body !== undefined) {
      const report = `globalThis.entered?.(${JSON.stringify(file)}, ${JSON.stringify(nameOf(node))})`;
      if (ts.isBlock(body)) edits.push([body.getStart() + 1, `${report};`]);
      else edits.push([body.getStart(), `(${report}, `], [body.end, ')']);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  let edited = text;
  for (const [at, added] of edits.sort(([a], [b]) => b - a)) {
    edited = edited.slice(0, at) + added + edited.slice(at);
  }
  return edited;
}

/** The name that a reader sees: its own, or that of the constant or property that it is the value of. */
const nameOf = ({ name, parent }) => (name ?? parent.name)?.getText?.() ?? '';
