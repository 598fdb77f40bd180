import { z } from "zod";
import { ServiceError } from "../errors.ts";
import type { EngineChoice, EngineKind } from "./engine-profile.ts";
import { asCount, asText, get, getFields, type Probe, refusal } from "./probe-call.ts";

export type Identity = {
  model: string;
  /** Null where nothing but its routes tells it. */
  kind: EngineKind | null;
  version: string | null;
  maxModelLen: number | null;
  weightVersion: string | null;
  /** Why its models are not known. Only an engine of ProRL's may go on without. */
  noModels: ServiceError | null;
};

const MAX_LISTED_MODELS = 20;

/** ProRL's engine serves one model and never asks for its name. */
const UNNAMED_MODEL = "policy";

const modelsSchema = z.object({
  data: z.array(
    z.object({ id: z.string().min(1), max_model_len: z.number().int().min(1).nullish() }),
  ),
});

type Models = z.output<typeof modelsSchema>["data"];

/** What a server says about itself. @throws ServiceError `engine_*`, `invalid_field` */
export async function identify(
  probe: Probe,
  model: string | undefined,
  engine: EngineChoice,
): Promise<Identity> {
  if (engine === "text")
    return { ...UNKNOWN, ...chooseModel(probe, await listModels(probe), model) };
  const [models, version, info, server, weights, vllmWeights] = await Promise.all([
    listModels(probe).catch((error) => error as unknown),
    getFields(probe, "/version"),
    getFields(probe, "/get_model_info"),
    getFields(probe, "/server_info"),
    getFields(probe, "/get_weight_version"),
    getFields(probe, "/weight_info"),
  ]);
  const isVllm = asText(version.version) !== null;
  const isSglang = asText(info.model_path) !== null;
  const kind = isVllm ? ("vllm" as const) : isSglang ? ("sglang" as const) : null;
  const told = {
    kind,
    version: asText(version.version) ?? asText(server.version),
    weightVersion: [weights, info, vllmWeights].reduce<string | null>(
      (found, fields) => found ?? asText(fields.weight_version),
      null,
    ),
  };
  if (!Array.isArray(models)) {
    refusal(models);
    const noModels = models as ServiceError;
    const mayDoWithout = kind === null && (engine === "auto" || engine === "prorl");
    if (!mayDoWithout) throw noModels;
    return { ...UNKNOWN, ...told, model: model ?? UNNAMED_MODEL, noModels };
  }
  const chosen = chooseModel(probe, models, model);
  return {
    ...UNKNOWN,
    ...told,
    model: chosen.model,
    maxModelLen: chosen.maxModelLen ?? asCount(server.context_length),
  };
}

const UNKNOWN = {
  kind: null,
  version: null,
  maxModelLen: null,
  weightVersion: null,
  noModels: null,
};

async function listModels(probe: Probe): Promise<Models> {
  const parsed = modelsSchema.safeParse(await get(probe, "v1", "/models"));
  if (parsed.success) return parsed.data.data;
  const issue = parsed.error.issues[0];
  const what = `${issue?.path.join(".") || "the reply"}: ${issue?.message}`;
  const { shown } = probe.endpoint;
  throw new ServiceError("engine_bad_reply", `${shown}: not a list of models: ${what}`);
}

function chooseModel({ endpoint }: Probe, models: Models, model: string | undefined) {
  const only = model === undefined && models.length === 1;
  const chosen = only ? models[0] : models.find(({ id }) => id === model);
  if (chosen) return { model: chosen.id, maxModelLen: chosen.max_model_len ?? null };
  const names = models.slice(0, MAX_LISTED_MODELS).map(({ id }) => id);
  const more = models.length > names.length ? ` and ${models.length - names.length} more` : "";
  const serves = names.length === 0 ? "no model" : `${names.join(", ")}${more}`;
  const problem = model === undefined ? "no model is named" : `there is no model "${model}"`;
  throw new ServiceError("invalid_field", `${endpoint.shown}: ${problem}; it serves ${serves}`, {
    field: "model",
    mend: "name one of the models that it serves",
  });
}
