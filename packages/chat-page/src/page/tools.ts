import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Fields, fieldsOf, textOf, wordsOf } from './fields.js';

/** The titles in the schemas of tools, by their names. */
export type ToolTitles = Fields;

export const ToolsContext = createContext<ToolTitles>({});

const entryOf = (tools: ToolTitles, name: string): Fields =>
  fieldsOf(Object.hasOwn(tools, name) ? tools[name] : undefined);

/** The title of a tool, or the words of its name. */
export const titleOfTool = (tools: ToolTitles, name: string, schema?: Fields): string =>
  textOf((schema ?? fieldsOf(entryOf(tools, name)['input']))['title']) || wordsOf(name);

/** A tool as people read it: its title, and the titles in the schemas of its arguments and its result. */
export const useTool = (name: string, schema?: Fields) => {
  const tools = useContext(ToolsContext);
  const { input, output } = entryOf(tools, name);
  return {
    title: titleOfTool(tools, name, schema),
    input: schema ?? fieldsOf(input),
    output: fieldsOf(output),
  };
};
