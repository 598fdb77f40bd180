import { z } from "zod";
import { ERRORS } from "../../errors.ts";
import { OPERATIONS, type Operation } from "./operations.ts";

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 description of the native routes. */
export function openApiDocument(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const operation of OPERATIONS) {
    const [method = "", path = ""] = operation.route.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, path) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "rolloutd",
      version,
      description:
        "Rollouts of LLM agents as a service. Every error is `{error: ErrorBody}`. HEAD answers what GET would, without its body; OPTIONS, and the 405 for any other method, have what a path takes in `Allow`.",
    },
    paths,
    components: { schemas: { Error: errorSchema() }, securitySchemes: { token: BEARER } },
    security: [{}, { token: [] }],
  };
}

const BEARER = { type: "http", scheme: "bearer" };

function describe({ summary, query, body, example, answers }: Operation, path: string): Json {
  const types = answers ?? ["application/json"];
  return {
    summary,
    parameters: [...pathParameters(path), ...queryParameters(query)],
    ...(body ? { requestBody: requestBody(body, example) } : {}),
    responses: {
      "2XX": { description: "done", content: Object.fromEntries(types.map((type) => [type, {}])) },
      default: {
        description: "refused; `error.code` says why, `error.field` where, `error.mend` what to do",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: "path", required: true, schema: { type: "string" } };
  });
}

function queryParameters(query: z.ZodType | undefined): Json[] {
  if (!query) return [];
  const { properties = {}, required = [] } = jsonSchema(query) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => {
    return { name, in: "query", required: required.includes(name), schema };
  });
}

function requestBody(body: z.ZodType, example: unknown): Json {
  const content = { schema: jsonSchema(body), ...(example === undefined ? {} : { example }) };
  return { required: true, content: { "application/json": content } };
}

/** What may be sent; what a route makes of it is its own business. */
function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return rest as Json;
}

function errorSchema(): Json {
  const text = { type: "string" };
  const error = {
    type: "object",
    required: ["code", "message", "boundary", "retryable"],
    properties: {
      code: { enum: Object.keys(ERRORS) },
      message: text,
      boundary: { enum: [...new Set(Object.values(ERRORS).map(({ boundary }) => boundary))] },
      retryable: { type: "boolean" },
      field: text,
      mend: text,
      details: { type: "object" },
    },
  };
  return { type: "object", required: ["error"], properties: { error } };
}
