{{- define "image" -}}
{{- $registry := required "image.registry is empty. Name the registry and path of your images: --set image.registry=registry.example.com/queue" .Values.image.registry -}}
{{ $registry }}/jobqueue-controller
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "validationActions" -}}
{{ eq .Values.tenancy.mode "enforce" | ternary "[Deny]" "[Warn, Audit]" }}
{{- end }}
