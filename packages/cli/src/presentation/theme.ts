import picocolors from 'picocolors';

/** Formatters for text in a terminal; all of them pass text through where colour is off. */
export type Colors = ReturnType<typeof picocolors.createColors>;

/** How output looks. */
export interface Theme {
  readonly colors: Colors;
  /** Whether the signs of the program itself may go beyond ASCII. */
  readonly unicode: boolean;
  /** Columns that a line should keep to. */
  readonly width: number;
}

/** What a theme is read from. */
export interface ThemeInit {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly output: { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined };
  /** False when the caller asked for no colour. */
  readonly color: boolean;
}

/** Columns of an output that does not know its own. */
const defaultWidth = 72;

/** A theme without colour, 72 columns wide. */
export const plainTheme: Theme = {
  colors: picocolors.createColors(false),
  unicode: true,
  width: defaultWidth,
};

/** Reads the theme off the environment: `NO_COLOR` wins over `FORCE_COLOR`, and that over what the output is. */
export const createTheme = ({ env, platform, output, color }: ThemeInit): Theme => ({
  colors: picocolors.createColors(color && hasColor(env, output)),
  unicode: hasUnicode(env, platform),
  width: widthOf(output),
});

/** A terminal that does not know its columns says 0. */
const widthOf = ({ columns = 0 }: ThemeInit['output']): number =>
  columns === 0 ? defaultWidth : Math.min(Math.max(columns, 40), 120);

const hasColor = (env: ThemeInit['env'], { isTTY = false }: ThemeInit['output']): boolean => {
  if (isSet(env['NO_COLOR'])) return false;
  if (isSet(env['FORCE_COLOR'])) return !['0', 'false'].includes(env['FORCE_COLOR'] ?? '');
  return isTTY && env['TERM'] !== 'dumb';
};

/** Where no locale is named, only the bare console of Linux and the old one of Windows lack the signs. */
const hasUnicode = (env: ThemeInit['env'], platform: string): boolean => {
  if (platform === 'win32') return isSet(env['WT_SESSION'] ?? env['TERM_PROGRAM']);
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet);
  return locale === undefined ? env['TERM'] !== 'linux' : /utf-?8/i.test(locale);
};

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '';
