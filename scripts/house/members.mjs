// The members of what a layer, a phase and a call can see, each with the rooms that read it.
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { readJson, root } from '../workspaces.mjs';

const isTest = (file) => /\.(test(-d|-support|-data)?|d)\.ts$/.test(file);

/** The product code of all packages. */
const files = () =>
  readdirSync(join(root, 'packages')).flatMap((name) => {
    const folder = `packages/${name}/src`;
    return ts.sys.directoryExists(join(root, folder))
      ? ts.sys.readDirectory(join(root, folder), ['.ts']).filter((file) => !isTest(file))
      : [];
  });

/** The entries of core, as paths to its sources: other packages import what was built. */
const paths = () =>
  Object.fromEntries(
    Object.entries(readJson(root, 'packages/millrace/package.json').exports).flatMap(
      ([entry, { types }]) =>
        types === undefined
          ? []
          : [
              [
                posix.join('millrace', entry),
                [
                  posix.join(
                    'packages/millrace',
                    types.replace('/dist/', '/src/').replace('.d.ts', '.ts'),
                  ),
                ],
              ],
            ],
    ),
  );

const roomOf = (file) => {
  const [, name, path] = /packages\/([^/]+)\/src\/(.*)\.ts$/.exec(file);
  if (name !== 'millrace') return name;
  return /^(?:layers\/)?[^/]+/.exec(path)[0];
};

/** Each member of the interfaces, by `Interface.member`, with the sorted rooms that read it. */
export function membersAndUsers(interfaces) {
  const program = ts.createProgram(files(), {
    ...ts.convertCompilerOptionsFromJson(readJson(root, 'tsconfig.json').compilerOptions, root)
      .options,
    composite: false,
    types: ['node'],
    noEmit: true,
    paths: paths(),
    baseUrl: root,
  });
  const checker = program.getTypeChecker();
  const sources = program
    .getSourceFiles()
    .filter(({ fileName }) => /\/packages\/[^/]+\/src\//.test(fileName));
  const members = new Map();
  const names = new Set();
  for (const { statements } of sources.filter(({ fileName }) =>
    fileName.includes('/millrace/src/'),
  )) {
    for (const each of statements) {
      if (!ts.isInterfaceDeclaration(each) || !interfaces.includes(each.name.text)) continue;
      for (const member of each.members) {
        const name = member.name.getText();
        names.add(name);
        members.set(member, { name: `${each.name.text}.${name}`, rooms: new Set() });
      }
    }
  }
  const read = (symbol, file) => {
    for (const declaration of symbol?.declarations ?? [])
      members.get(declaration)?.rooms.add(roomOf(file));
  };
  for (const source of sources) {
    const visit = (node) => {
      if (ts.isPropertyAccessExpression(node) && names.has(node.name.text)) {
        read(checker.getSymbolAtLocation(node.name), source.fileName);
      }
      if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) {
        const name = (node.propertyName ?? node.name).getText();
        if (names.has(name))
          read(checker.getTypeAtLocation(node.parent).getProperty(name), source.fileName);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return [...members.values()].map(({ name, rooms }) => ({ name, rooms: [...rooms].sort() }));
}
