import { seeOther } from '#app/(operator)/form-answers.ts'
import { hasStarted } from '#app/(operator)/require-operator.ts'
import { resource } from '#lib/api/resource.ts'
import { referencePage } from '#lib/api/viewer/page.ts'
import { service } from '#lib/server/services.ts'

/** The API reference: a viewer of the OpenAPI document, served from this service's own origin. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  // A deployment that lacks a variable has no document; the home page names the variable.
  { GET: async (request) => ((await hasStarted()) ? referencePage(request, await service()) : seeOther('/')) },
  { readers: 'ourselves' },
)
