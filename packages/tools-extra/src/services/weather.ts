import { env } from 'node:process';
import { MillraceError, tool, type Tool, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { checkOptions, oneOf } from 'millrace/values';
import { forkJoin, map, type Observable, type SchedulerLike, switchMap } from 'rxjs';
import { listAt, numberAt, textAt, valueAt } from './json.js';
import {
  createService,
  json$,
  keyRules,
  oneLine,
  optionalKey,
  requiredKey,
  serviceError,
  type Service,
  type ServiceOptions,
} from './service.js';

/** Options of `weather`. */
export interface WeatherOptions extends ServiceOptions {
  /** Open-Meteo, free without a key for non-commercial use, or QWeather. */
  readonly provider: 'open-meteo' | 'qweather';
  /**
   * The key. Default: the environment variable `OPEN_METEO_API_KEY`, which is optional, or `QWEATHER_API_KEY`, which is
   * required.
   */
  readonly apiKey?: string | undefined;
  /**
   * The origin of the service. For QWeather, the API host of your account, which is required; default: the environment
   * variable `QWEATHER_API_HOST`. For Open-Meteo, it replaces the hosts of the forecast and of the search for places.
   */
  readonly baseURL?: string | undefined;
}

/**
 * Creates the tool `weather`, which returns the current weather of a place and a forecast of up to 7 days.
 *
 * The best match of the place counts: its name, region and country are in the result. Units are metric. `details` has
 * `place`, `now` and `days`. Throws a `config` error without a key or a host that the provider requires.
 */
export const weather = (options: WeatherOptions): Tool => {
  checkOptions('weather()', options, { ...keyRules, provider: oneOf('open-meteo', 'qweather') }, [
    'provider',
  ]);
  const { maxLength = 8_000 } = options;
  const report$ = options.provider === 'qweather' ? qweather(options) : openMeteo(options);
  return tool({
    name: 'weather',
    idempotent: true,
    description: 'Returns the current weather of a place, and a forecast.',
    input: jsonSchema({
      type: 'object',
      properties: {
        place: {
          type: 'string',
          minLength: 2,
          maxLength: 100,
          description: 'The name of a city, or a postal code.',
          examples: ['Oslo'],
        },
        days: {
          type: 'integer',
          minimum: 1,
          maximum: 7,
          description: 'The number of days, including today. Default: 3.',
        },
      },
      required: ['place'],
      additionalProperties: false,
    }),
    run: ({ place, days = 3 }, { scheduler }) =>
      report$(place, days, scheduler).pipe(map((report) => outputOf(report, maxLength))),
  });
};

interface Report {
  /** With region and country. */
  readonly place: string;
  readonly now: Conditions;
  readonly days: readonly Day[];
}

interface Conditions {
  readonly time: string;
  readonly weather: string;
  readonly temperature: number | null;
  readonly feelsLike: number | null;
  readonly humidity: number | null;
  readonly windSpeed: number | null;
  readonly precipitation: number | null;
}

interface Day {
  readonly date: string;
  readonly weather: string;
  readonly low: number | null;
  readonly high: number | null;
  readonly precipitation: number | null;
}

type ReportOf = (place: string, days: number, scheduler: SchedulerLike) => Observable<Report>;

const outputOf = (report: Report, maxLength: number): ToolOutput => {
  const { place, now, days } = report;
  const quantity = (name: string, value: number | null, unit: string): readonly string[] =>
    value === null ? [] : [`${name}${value}${unit}`];
  const current = [
    now.weather,
    ...quantity('', now.temperature, ' °C'),
    ...quantity('feels like ', now.feelsLike, ' °C'),
    ...quantity('humidity ', now.humidity, '%'),
    ...quantity('wind ', now.windSpeed, ' km/h'),
    ...quantity('precipitation ', now.precipitation, ' mm'),
  ];
  const forecast = days.map((day) =>
    [
      `${day.date}: ${day.weather}`,
      ...quantity('', day.low, ' °C at night'),
      ...quantity('up to ', day.high, ' °C'),
      ...quantity('precipitation ', day.precipitation, ' mm'),
    ].join(', '),
  );
  const content = [place, `Now (${now.time}): ${current.join(', ')}`, ...forecast].join('\n');
  return toolOutput({ content: content.slice(0, maxLength), details: report });
};

/** `null` if the service has not measured it. */
const amountAt = (json: unknown, name: string): number | null => numberAt(json, name) ?? null;

const placeIn = (found: unknown, ...fields: readonly string[]): string =>
  [...new Set(fields.map((field) => oneLine(textAt(found, field), 100)))]
    .filter((name) => name !== '')
    .join(', ');

const notFound = (service: Service, place: string): MillraceError =>
  serviceError(service, 'invalidRequest', `has no place called '${place}'`);

// ---------------------------------------------------------------- Open-Meteo

const openMeteo = (options: WeatherOptions): ReportOf => {
  const key = optionalKey(options.apiKey, 'OPEN_METEO_API_KEY');
  const prefix = key === undefined ? '' : 'customer-';
  const service = createService('Open-Meteo', `https://${prefix}api.open-meteo.com`, options, key);
  const placesUrl =
    options.baseURL === undefined
      ? `https://${prefix}geocoding-api.open-meteo.com`
      : service.baseURL;
  return (place, days, scheduler) =>
    json$(
      service,
      { baseURL: placesUrl, path: '/v1/search', query: { name: place, count: 1, apikey: key } },
      scheduler,
    ).pipe(
      switchMap((places) => {
        const [found] = listAt(places, 'results');
        if (found === undefined) throw notFound(service, place);
        const query = {
          latitude: numberAt(found, 'latitude'),
          longitude: numberAt(found, 'longitude'),
          current:
            'temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,wind_speed_10m',
          daily: 'weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum',
          timezone: 'auto',
          forecast_days: days,
          apikey: key,
        };
        return json$(service, { path: '/v1/forecast', query }, scheduler).pipe(
          map((forecast) =>
            openMeteoReport(placeIn(found, 'name', 'admin1', 'country'), forecast, days),
          ),
        );
      }),
    );
};

const openMeteoReport = (place: string, forecast: unknown, days: number): Report => {
  const now = valueAt(forecast, 'current');
  const daily = (name: string, index: number): number | null =>
    amountAt({ value: listAt(forecast, 'daily', name)[index] }, 'value');
  return {
    place,
    now: {
      time: oneLine(textAt(now, 'time'), 50),
      weather: weatherOf(amountAt(now, 'weather_code')),
      temperature: amountAt(now, 'temperature_2m'),
      feelsLike: amountAt(now, 'apparent_temperature'),
      humidity: amountAt(now, 'relative_humidity_2m'),
      windSpeed: amountAt(now, 'wind_speed_10m'),
      precipitation: amountAt(now, 'precipitation'),
    },
    days: listAt(forecast, 'daily', 'time')
      .slice(0, days)
      .map((date, index) => ({
        date: oneLine(textAt({ date }, 'date'), 50),
        weather: weatherOf(daily('weather_code', index)),
        low: daily('temperature_2m_min', index),
        high: daily('temperature_2m_max', index),
        precipitation: daily('precipitation_sum', index),
      })),
  };
};

/** Table 4677 of the World Meteorological Organization, as far as Open-Meteo uses it. */
const weatherOf = (code: number | null): string => codes[code ?? -1] ?? 'unknown';

const codes: Readonly<Partial<Record<number, string>>> = {
  ...{
    0: 'clear',
    1: 'mainly clear',
    2: 'partly cloudy',
    3: 'overcast',
    45: 'fog',
    48: 'rime fog',
  },
  ...{ 51: 'light drizzle', 53: 'drizzle', 55: 'dense drizzle', 56: 'light freezing drizzle' },
  ...{ 57: 'freezing drizzle', 61: 'light rain', 63: 'rain', 65: 'heavy rain' },
  ...{ 66: 'light freezing rain', 67: 'freezing rain', 71: 'light snow', 73: 'snow' },
  ...{ 75: 'heavy snow', 77: 'snow grains', 80: 'light showers', 81: 'showers' },
  ...{ 82: 'violent showers', 85: 'light snow showers', 86: 'snow showers' },
  ...{ 95: 'thunderstorm', 96: 'thunderstorm with hail', 99: 'thunderstorm with heavy hail' },
};

// ---------------------------------------------------------------- QWeather

const qweather = (options: WeatherOptions): ReportOf => {
  const key = requiredKey('weather()', options.apiKey, 'QWEATHER_API_KEY');
  const host = env['QWEATHER_API_HOST'];
  if (options.baseURL === undefined && (host === undefined || host === '')) {
    throw new MillraceError(
      'config',
      "weather() needs the API host of your account at QWeather: pass 'baseURL', or set the environment variable QWEATHER_API_HOST.",
    );
  }
  const service = createService('QWeather', `https://${host ?? ''}`, options, key);
  const ask$ = (
    path: string,
    query: Readonly<Record<string, string>>,
    scheduler: SchedulerLike,
  ): Observable<unknown> =>
    json$(
      service,
      { path, query: { ...query, lang: 'en' }, headers: { 'x-qw-api-key': key } },
      scheduler,
    ).pipe(
      map((json) => {
        const code = textAt(json, 'code');
        // 404: there is no such place.
        if (code === '200' || code === '404') return json;
        const kind = code === '429' || code === '402' ? 'rateLimited' : 'invalidRequest';
        throw serviceError(service, kind, `answered with the code ${oneLine(code, 20)}`);
      }),
    );
  return (place, days, scheduler) =>
    ask$('/geo/v2/city/lookup', { location: place, number: '1' }, scheduler).pipe(
      switchMap((places) => {
        const [found] = listAt(places, 'location');
        if (found === undefined) throw notFound(service, place);
        const query = { location: textAt(found, 'id'), unit: 'm' };
        const length = days > 3 ? '7d' : '3d';
        return forkJoin([
          ask$('/v7/weather/now', query, scheduler),
          ask$(`/v7/weather/${length}`, query, scheduler),
        ]).pipe(
          map(([now, daily]) =>
            qweatherReport(placeIn(found, 'name', 'adm2', 'adm1', 'country'), now, daily, days),
          ),
        );
      }),
    );
};

const qweatherReport = (place: string, answer: unknown, daily: unknown, days: number): Report => {
  const now = valueAt(answer, 'now');
  return {
    place,
    now: {
      time: oneLine(textAt(now, 'obsTime'), 50),
      weather: oneLine(textAt(now, 'text'), 50),
      temperature: amountAt(now, 'temp'),
      feelsLike: amountAt(now, 'feelsLike'),
      humidity: amountAt(now, 'humidity'),
      windSpeed: amountAt(now, 'windSpeed'),
      precipitation: amountAt(now, 'precip'),
    },
    days: listAt(daily, 'daily')
      .slice(0, days)
      .map((day) => ({
        date: oneLine(textAt(day, 'fxDate'), 50),
        weather: oneLine(textAt(day, 'textDay'), 50),
        low: amountAt(day, 'tempMin'),
        high: amountAt(day, 'tempMax'),
        precipitation: amountAt(day, 'precip'),
      })),
  };
};
