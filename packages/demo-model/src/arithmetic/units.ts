/**
 * Finds the name that calculators commonly use for a unit of measure, or nothing for any other word.
 *
 * It only spells (`kilometres` becomes `kilometers`, `lbs` becomes `lb`); how much a unit is, the tool knows.
 */
export const unitOf = (word: string): string | undefined =>
  units.get(word) ?? units.get(word.toLowerCase());

const plural = (names: string): readonly string[] =>
  names.split(' ').flatMap((name) => [name, `${name}s`]);

const prefixes = 'kilo centi milli micro nano mega giga tera'.split(' ');

const metric = prefixes.flatMap((prefix) =>
  plural(`${prefix}meter ${prefix}gram ${prefix}liter ${prefix}byte ${prefix}watt ${prefix}second`),
);

const asTheyAre = [
  ...plural('meter gram liter byte bit watt joule second minute hour day week month year decade'),
  ...plural('mile yard acre hectare gallon pint quart cup teaspoon tablespoon ounce ton tonne'),
  ...plural('newton pascal volt ampere ohm radian knot'),
  ...metric,
  ...'feet foot inch inches century centuries stone hertz degree degrees rad deg kelvin'.split(' '),
  ...'km m cm mm um nm mi ft yd kg g mg lb oz l ml dl cl s ms h Hz kHz MHz GHz'.split(' '),
  ...'B kB KB MB GB TB PB KiB MiB GiB b W kW MW kWh J kJ N Pa kPa bar atm psi V A degC degF K'.split(
    ' ',
  ),
];

const spellings: readonly (readonly [string, string])[] = [
  ['pounds', 'lb'],
  ['pound', 'lb'],
  ['lbs', 'lb'],
  ['kilos', 'kg'],
  ['kilo', 'kg'],
  ['kgs', 'kg'],
  ['kms', 'km'],
  ['secs', 'seconds'],
  ['sec', 'seconds'],
  ['mins', 'minutes'],
  ['min', 'minutes'],
  ['hrs', 'hours'],
  ['hr', 'hours'],
  ['mph', 'mi/h'],
  ['kph', 'km/h'],
  ['kmh', 'km/h'],
  ['celsius', 'degC'],
  ['centigrade', 'degC'],
  ['C', 'degC'],
  ['°c', 'degC'],
  ['fahrenheit', 'degF'],
  ['F', 'degF'],
  ['°f', 'degF'],
  ['°', 'deg'],
];

const british = asTheyAre
  .filter((name) => /(?:met|lit)ers?$/u.test(name))
  .map((name): [string, string] => [name.replace(/er(?=s?$)/u, 're'), name]);

const units = new Map<string, string>([
  ...asTheyAre.map((name): [string, string] => [name, name]),
  ...british,
  ...spellings,
]);
